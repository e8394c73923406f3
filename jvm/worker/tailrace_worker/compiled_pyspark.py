"""Where a worker imports PySpark from."""

from __future__ import annotations

from pathlib import Path


def prefer_compiled_pyspark(path: list[str]) -> None:
    """Remove Spark's zipped PySpark from the path if the installed package that it belongs to is on the path as well.

    Spark puts the zip first. Python keeps no compiled form of what it imports from a zip, so each daemon would compile
    all of PySpark again.
    """
    for entry in [entry for entry in path if entry.endswith("/pyspark/python/lib/pyspark.zip")]:
        package = Path(entry).parents[2]
        if str(package.parent) in path and (package / "__init__.py").is_file():
            path.remove(entry)
