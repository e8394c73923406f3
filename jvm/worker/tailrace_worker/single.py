"""One worker without a daemon, for spark.python.use.daemon=false: `python -m tailrace_worker.single`."""

from __future__ import annotations

from pyspark.worker import main
from pyspark.worker_util import get_sock_file_to_executor

from tailrace_worker.answers import patch_worker

if __name__ == "__main__":
    patch_worker()
    with get_sock_file_to_executor() as sock_file:
        main(sock_file, sock_file)
