"""A Chromium for the browser tests: found, else installed; never silently done without.

Run as `python -m tests.browser.chromium`. In order: the CHROMIUM variable, a Chromium or Chrome of this
machine, Playwright's own download of an earlier time; then, on Debian and Ubuntu as root, the distribution's
package, else Playwright's download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)
# No sandbox (tests run as root in containers), no traffic of the browser's own, and no other machine's name is known.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


def candidates() -> Iterator[str]:
    """Browsers of this machine, best first."""
    named = os.environ.get("CHROMIUM")
    if named:
        yield named
    yield from (path for name in NAMES if (path := shutil.which(name)))
    yield from (path for path in APPS if Path(path).exists())
    yield from playwrights_own()


def playwrights_own() -> list[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return [path] if Path(path).exists() else []


def works(path: str) -> bool:
    """Whether it starts: Ubuntu's chromium-browser, for one, may be a stub that only names a snap."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def find() -> str | None:
    """The path of a browser that starts, or None."""
    return next((path for path in candidates() if works(path)), None)


def install() -> None:
    """Install one: apt-get as root where there is one, else Playwright's own."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["apt-get", "update", "-qq"], check=False, env=quiet)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"],
            check=False,
            env=quiet,
        )
        if find():
            return
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def main() -> int:
    path = find()
    if path is None:
        install()
        path = find()
    if path is None:
        sys.stderr.write(
            "No Chromium or Chrome was found, and none could be installed.\n"
            "Install one (Debian: apt-get install chromium), or name one: CHROMIUM=/path/to/chrome make test.\n"
            "`make test-fast` runs the tests that need no browser.\n"
        )
        return 1
    sys.stdout.write(f"Browser tests use {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
