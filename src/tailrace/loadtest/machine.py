"""The machine that figures were measured on, to be printed with them."""

from __future__ import annotations

import os
import platform

import pyspark

from tailrace._spark.java import find_java


def describe_machine() -> str:
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores, {memory_gb:.0f} GiB, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, Java {find_java().version}, Spark {pyspark.__version__}"
    )
