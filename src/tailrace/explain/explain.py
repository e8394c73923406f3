"""`tailrace.explain`: how a query will run."""

from __future__ import annotations

from tailrace.check.check import require_query
from tailrace.check.facts import Query, facts_of
from tailrace.explain import Explanation


def explain(query: Query) -> Explanation:
    """The stages of a query in Real-Time Mode, which run at the same time, and what happens when an epoch ends.

    Takes a DataFrame, what `start()` would be called on, or a query that runs. Nothing is started.

        print(tailrace.explain(payments))
        tailrace.explain(payments).save("payments.svg")
    """
    require_query(query)
    return Explanation(facts_of(query).shape)
