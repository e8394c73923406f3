"""`tailrace.explain`: how a query will run."""

from __future__ import annotations

from tailrace.check.check import require_query
from tailrace.check.facts import Query, facts_of
from tailrace.explain import Explanation


def explain(query: Query) -> Explanation:
    """Show how a query will run in Real-Time Mode: its stages, and what happens at an epoch boundary.

        print(tailrace.explain(payments))
        tailrace.explain(payments).save("payments.svg")

    Nothing is started.

    :param query: the writer you would call `start()` on, a DataFrame, or a running query.
    """
    require_query(query)
    return Explanation(facts_of(query).shape)
