"""A real browser for tests: the machine's own, or one that apt installs."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "TAILRACE_TEST_BROWSER"
INSTALL_WITHIN_S = 200  # less than a test's time-out, so the reason is reported

# No sandbox: tests may run as root in a container. The rest keeps the browser from talking to anybody else.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def browser_path() -> str:
    """The browser's executable. Skips the test, with the reason, if none is here and none can be installed."""
    named = os.environ.get(VARIABLE)
    if named:
        if shutil.which(named) is None:
            pytest.fail(f"{VARIABLE} names {named!r}, which is not a program", pytrace=False)
        return named
    found = _installed() or _installed_by_apt()
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is here and apt-get installed none; set {VARIABLE}")
    return found


def _installed() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


@cache
def _installed_by_apt() -> str | None:
    """Once per run, and only if no password is needed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    try:
        for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium", "fonts-liberation"]):
            subprocess.run(
                ["apt-get", "-qq", *command],
                check=True,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                timeout=INSTALL_WITHIN_S / 2,
            )
    except (subprocess.SubprocessError, OSError):
        return None
    return _installed()
