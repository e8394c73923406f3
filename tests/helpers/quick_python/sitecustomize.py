"""Python imports this at its start in every process of the tests: tests/conftest.py puts the folder on the path.

Spark puts a zip of PySpark before the installed package for its Python workers. Python keeps no compiled form of what
it imports from a zip, so each worker would compile PySpark again: half a second, hundreds of times.
"""

import sys
from pathlib import Path

for entry in [entry for entry in sys.path if entry.endswith("/pyspark/python/lib/pyspark.zip")]:
    if str(Path(entry).parents[3]) in sys.path:
        sys.path.remove(entry)
