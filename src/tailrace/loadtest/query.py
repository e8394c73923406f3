"""A query under load that ends too early."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from tailrace.errors import TailraceError


def raise_if_ended(query: StreamingQuery) -> Callable[[], None]:
    """A `check` for a load test that raises as soon as the query has ended, with its error."""

    def check() -> None:
        if not query.isActive:
            failure = query.exception()
            text = str(failure) if failure else "it stopped by itself"
            raise TailraceError.find_in(text) or TailraceError(
                "TAILRACE_QUERY_FAILED", f"the streaming query ended: {text.splitlines()[0]}", "read Spark's log."
            )

    return check
