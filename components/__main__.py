"""`python -m components COMMAND`: long jobs without a browser. Only the standard library is sure to be here."""

from __future__ import annotations

import sys


def _without_packages(name: str | None) -> int:
    """Say in one line what to do where a package is not installed for this Python; the exit status of an input that fails."""
    windows = sys.platform == "win32"
    activate = r".venv\Scripts\Activate.ps1" if windows else "source .venv/bin/activate"
    sys.stderr.write(
        f"The Python of this command ({sys.executable}) lacks the package {name}. The commands need those that `make run` "
        f"installs into .venv. Run in the project's folder: {activate}\n"
    )
    return 2


if __name__ == "__main__":
    try:
        from components.command_line.program import main
    except KeyboardInterrupt:  # before the program could take it
        status = 130
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in {"components", "dashboard"}:
            raise
        status = _without_packages(missing.name)
    else:
        try:
            status = main(sys.argv[1:])
        except KeyboardInterrupt:
            status = 130
    sys.exit(status)
