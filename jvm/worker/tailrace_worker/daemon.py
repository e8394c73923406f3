"""PySpark's worker daemon, whose workers answer at once; Spark starts it as `python -m tailrace_worker.daemon`."""

from __future__ import annotations

import importlib
import os
import socket
from typing import Any


def main() -> None:
    daemon: Any = importlib.import_module(os.environ.get("TAILRACE_DAEMON_MODULE", "pyspark.daemon"))
    run = daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:
        if sock.family != socket.AF_UNIX:
            # Else a small answer waits until the other side has acknowledged the one before.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Imported after the fork, as PySpark does: pandas and Arrow start threads.
        from tailrace_worker.answers import answer_at_once

        answer_at_once()
        return int(run(sock, authenticated))

    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
