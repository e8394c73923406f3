"""Proof by destruction: kill whatever takes part in a query, by a seeded schedule, and do the books on its output.

Records are numbered, sent at a steady rate, and read again from the output topic by a client that is not Spark's.
Nothing may be lost; under a sink that promises it, nothing may be written twice.
"""

from tailrace.chaos.options import ChaosOptions, UsersQuery
from tailrace.chaos.run import ChaosResult, run_chaos
from tailrace.chaos.view import ChaosView

__all__ = ["ChaosOptions", "ChaosResult", "ChaosView", "UsersQuery", "run_chaos"]
