"""The code beside a figure: how a researcher gets its numbers without this project, or the command that gives them here."""
