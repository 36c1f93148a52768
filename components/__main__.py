"""`python -m components COMMAND`: long jobs without a browser."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    try:
        from components.command_line.program import main

        status = main(sys.argv[1:])
    except KeyboardInterrupt:  # before the program could take it
        status = 130
    sys.exit(status)
