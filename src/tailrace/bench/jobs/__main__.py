"""`python -m bench_jobs job.json`: run one workload on one system until the process is killed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from .job import Job


def main() -> None:
    job = Job.from_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    runtime = importlib.import_module(f".runtimes.{job.runtime}", __package__)
    workload = importlib.import_module(f".{job.workload.replace('-', '_')}.{job.runtime}", __package__)
    runtime.run(job, workload)


if __name__ == "__main__":
    main()
