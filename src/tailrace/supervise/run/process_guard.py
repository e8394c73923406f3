"""Runs one command and sees to it that nothing of it outlives its owner. A program of its own, without imports of ours.

The owner holds the other end of our standard input. When that is closed, by the owner or by its death, the whole
process group is killed, and we with it. Signals to the group are for the command; we stay to tell how it ended.
"""

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Not SIG_IGN, which the command would inherit.
        signal.signal(sign, lambda _number, _frame: None)
    threading.Thread(target=kill_all_when_the_owner_is_gone, daemon=True).start()
    code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    # As a shell tells it: the owner cannot be told by a signal that would be ours.
    return 128 - code if code < 0 else code


def kill_all_when_the_owner_is_gone() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
