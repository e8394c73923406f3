"""Spark's own worker daemon, for tests: it imports what its workers need before it forks them.

Micro-batch and batch are what Real-Time Mode is compared with. Spark starts a Python worker for each task and each kind
of function, and each of them would import pandas: half a second of work for one row.
`tailrace_worker.daemon` does the same for the workers of real-time queries.
"""

from __future__ import annotations

import importlib
import sys

for module in ("pandas", "pyarrow", "pyspark.sql.pandas.serializers", "pyspark.worker"):
    importlib.import_module(module)
daemon = importlib.import_module("pyspark.daemon")

if __name__ == "__main__":
    daemon.manager()
else:
    # `tailrace_worker.daemon` imports the module that a user has configured, and replaces its functions.
    sys.modules[__name__] = daemon
