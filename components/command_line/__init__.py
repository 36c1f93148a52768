"""The command line: one module a command. They parse, call components, and print; nothing is computed here."""
