"""The results of a tested query."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery

from tailrace._process.machine_load import stretched
from tailrace.errors import TailraceError

if TYPE_CHECKING:
    from tailrace._testing.stream_test import StreamTest

POLL_S = 0.02
DEADLINE_S = 120.0


class Results:
    """The rows that a tested query has written."""

    def __init__(self, test: StreamTest) -> None:
        self._test = test
        self._taken = 0

    @property
    def query(self) -> StreamingQuery:
        """The running query."""
        return StreamingQuery(self._test._running.query())

    def rows(self) -> list[Row]:
        """All rows written so far, in the order of writing. Rows of different tasks come in any order."""
        self._test._raise_failure()
        return DataFrame(self._test._running.collected(), self._test.spark).collect()

    def new(self) -> list[Row]:
        """The rows that no earlier call of `new` returned."""
        found = self.rows()[self._taken :]
        self._taken += len(found)
        return found

    def latest(self, *key: str) -> dict[Any, Any]:
        """The last row of each key, as in a table that is updated.

        Maps the key to the value of the only other column, or to a Row if there are several.
        """
        table: dict[Any, Any] = {}
        for row in self.rows():
            fields = row.asDict()
            found = tuple(fields.pop(name) for name in key)
            [value] = fields.values() if len(fields) == 1 else [Row(**fields)]
            table[found[0] if len(key) == 1 else found] = value
        return table

    def until(self, condition: Callable[[list[Row]], bool], within_s: float = DEADLINE_S) -> list[Row]:
        """Wait until the rows written so far meet a condition, while the epoch is still open. For real-time queries.

        :param condition: called with all rows written so far.
        :param within_s: how long to wait before a TailraceError is raised; longer on a busy machine.
        """
        begun = time.monotonic()
        while not condition(found := self.rows()):
            if time.monotonic() - begun > (deadline_s := stretched(within_s)):
                raise too_slow(f"the results were {found[-20:]}", deadline_s)
            time.sleep(POLL_S)
        return found


def too_slow(what: str, within_s: float) -> TailraceError:
    return TailraceError(
        "TAILRACE_TEST_TIMEOUT",
        f"{what} within {within_s:.0f} s.",
        "look at the query's plan and at the session's slots: every stage needs one per partition.",
    )
