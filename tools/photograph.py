"""Take the picture of the dashboard in the documentation: the running demo in a real browser.

    python tools/photograph.py

The demo runs for a few minutes first, so there is something to see.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "dashboard.png"
MINUTES = 5
DEMO = [sys.executable, "-m", "tailrace", "demo", "--mode", "real-time", "--seconds", "10", "--keep"]


def main() -> None:
    demo = subprocess.Popen(DEMO, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert demo.stderr is not None
    url = ""
    for line in demo.stderr:
        print(line, end="")
        if found := re.search(r"http://\S+", line):
            url = found[0]
        if url and "Ctrl-C" in line:
            break
    try:
        time.sleep(60 * MINUTES)
        photograph(url)
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait()


def photograph(url: str) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url)
        # The warm-up queries have ended; the running one is the last.
        page.wait_for_timeout(3000)
        page.screenshot(path=PICTURE, full_page=True)
        browser.close()
    print(PICTURE)


if __name__ == "__main__":
    main()
