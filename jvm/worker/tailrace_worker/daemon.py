"""PySpark's worker daemon with patched workers; Spark starts it as `python -m tailrace_worker.daemon`."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import socket
import sys
from typing import Any

from tailrace_worker.compiled_pyspark import prefer_compiled_pyspark


def main() -> None:
    prefer_compiled_pyspark(sys.path)
    daemon: Any = importlib.import_module(os.environ.get("TAILRACE_DAEMON_MODULE", "pyspark.daemon"))
    run = daemon.worker
    tasks = 0

    def worker(sock: socket.socket, authenticated: bool) -> int:
        nonlocal tasks
        tasks += 1
        if tasks == 2:
            # The daemon collects garbage after each task, while the next epoch waits for its worker. Objects that have
            # survived the first task, mostly of pandas and Arrow, are excluded from further collections.
            gc.freeze()
        if sock.family != socket.AF_UNIX:
            # Otherwise a small answer waits until the other side has acknowledged the one before.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return int(run(sock, authenticated))

    daemon.worker = worker
    preload()
    daemon.manager()


def preload() -> None:
    """Import what every worker needs, before the first one is forked.

    PySpark imports it in each worker, which takes longer than the rest of a worker's start. Arrow's only thread by then
    is that of its allocator, which expects forks.
    """
    from tailrace_worker.answers import patch_worker

    patch_worker()
    for module in ("pyarrow", "pandas", "pyspark.sql.pandas.serializers"):
        # A worker that does not need them works without.
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


if __name__ == "__main__":
    main()
