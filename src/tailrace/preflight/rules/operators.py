"""Operations that cannot run in Real-Time Mode, from the plugin's support registry and from Spark itself."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.preflight.facts import Facts
from tailrace.preflight.findings import Finding, blocking
from tailrace.preflight.words import first_sentence, size_in_words

# Spark's own guess for what it cannot estimate is as large as can be.
UNKNOWN_BYTES = 2**62


def refused(facts: Facts) -> Iterator[Finding]:
    for operator in facts.described["refused"]:
        problem = f"{operator['name']} cannot run in Real-Time Mode: {operator['reason']}"
        if (table := operator.get("table_bytes")) is not None:
            problem += f" {_table(int(table))}"
        yield blocking(
            "TAILRACE_UNSUPPORTED_OPERATOR", operator["name"], problem, operator["remedy"], operator.get("line")
        )


def state_before_union(facts: Facts) -> Iterator[Finding]:
    for place in facts.described["state_before_union"]:
        yield blocking(
            "TAILRACE_STATE_BEFORE_UNION",
            "union",
            "one side of the union keeps state (an aggregation, dropDuplicates, transformWithState); Spark's Real-Time "
            "Mode allows that only behind the union.",
            "move the union before the stateful operation, or write the two sides with two queries.",
            place.get("line"),
        )


def refused_by_spark(facts: Facts) -> Iterator[Finding]:
    """What Spark would say by itself, unless it is about something that has been said already."""
    if facts.described["refused"] or facts.described["state_before_union"] or facts.described["same_source_twice"]:
        return
    for said in ("spark_refuses", "not_planned"):
        if message := facts.described.get(said):
            yield blocking(
                "TAILRACE_REFUSED_BY_SPARK",
                "query",
                f"Spark does not run this query as a stream: {first_sentence(message)}",
                "change what Spark names; its message says how where it knows.",
            )
            return


def _table(size_bytes: int) -> str:
    if size_bytes >= UNKNOWN_BYTES:
        return "Spark does not know how large the static side is, and does not broadcast it by itself."
    return f"Spark takes the static side to be {size_in_words(size_bytes)} large."
