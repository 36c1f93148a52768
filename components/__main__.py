"""`python -m components COMMAND`: long jobs without a browser."""

from __future__ import annotations

import sys

from components.command_line.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
