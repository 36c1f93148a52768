"""What a ranking is, and the codes by which addresses name the runs that make one."""
