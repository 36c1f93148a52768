"""One module a command: NAME, HELP, add_arguments and run."""
