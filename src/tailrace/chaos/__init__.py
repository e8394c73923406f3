"""Kill the processes of a query by a seeded schedule, and compare its output with its input.

Records are numbered, sent at a steady rate, and read from the output topic by a client that is not Spark's. No row may
be lost, the last record of each key must be right, and a sink that promises exactly-once may write no duplicates.
"""

from tailrace.chaos.options import ChaosOptions, UsersQuery
from tailrace.chaos.result import ChaosResult
from tailrace.chaos.run import run_chaos
from tailrace.chaos.view import ChaosView

__all__ = ["ChaosOptions", "ChaosResult", "ChaosView", "UsersQuery", "run_chaos"]
