from . import LONGEST

INPUT = "`value` STRING"
INPUT_FORMAT = "raw"
OUTPUT = "`value` STRING"
OUTPUT_FORMAT = "raw"
QUERY = f"SELECT TO_BASE64(SUBSTRING(`value`, 1, {LONGEST})) FROM input"  # noqa: S608
