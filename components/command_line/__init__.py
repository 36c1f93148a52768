"""The command line: one module per command. They parse options, call components and print; they compute nothing."""
