"""Operations that cannot run in Real-Time Mode, from the plugin's support registry and from Spark itself."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts
from tailrace.check.formatting import first_sentence, size_in_words
from tailrace.contract.findings import Finding, blocking
from tailrace.errors import TailraceError

# Spark's own guess for what it cannot estimate is as large as can be.
UNKNOWN_BYTES = 2**62
KNOWN_CHANGES = (
    ("Distinct aggregations", "use F.approx_count_distinct(…), or dropDuplicates before the aggregation."),
    (
        "is not supported in Update output mode, only in Append",
        "an aggregation after an outer join of two streams does not run in Real-Time Mode: write the joined rows to a "
        "topic, and aggregate them in another query.",
    ),
    (
        "without a watermark in the join keys",
        "give both sides a watermark, and the condition a range in time: "
        'F.expr("a.id = b.id AND b.time BETWEEN a.time AND a.time + INTERVAL 10 MINUTES").',
    ),
    ("pandas UDF", "aggregate with Spark's own functions, and give their result to a pandas_udf."),
)


def refused(facts: Facts) -> Iterator[Finding]:
    for operator in facts.described.refused:
        problem = operator.problem
        if (table := operator.table_bytes) is not None:
            problem += f" {_table(table)}"
        yield blocking("TAILRACE_UNSUPPORTED_OPERATOR", operator.name, problem, operator.fix, operator.line)


def state_before_union(facts: Facts) -> Iterator[Finding]:
    for refusal in facts.described.state_before_union:
        yield blocking(refusal.code, refusal.title, refusal.problem, refusal.fix, refusal.line)


def refused_by_spark(facts: Facts) -> Iterator[Finding]:
    """What Spark or the plugin would say by itself, unless it is about something that has been said already."""
    names = [operator.name for operator in facts.described.refused]
    if facts.described.state_before_union or facts.described.same_source_twice:
        return
    for said in ("spark_refuses", "not_planned"):
        message: str | None = getattr(facts.described, said)
        if message and (ours := TailraceError.find_in(message)):
            yield blocking(ours.code, "query", ours.problem, ours.fix)
            return
        if message and not (names and (said == "not_planned" or _is_about(message, names))):
            yield blocking(
                "TAILRACE_REFUSED_BY_SPARK",
                "query",
                f"Spark does not run this query as a stream: {first_sentence(message)}",
                next((change for part, change in KNOWN_CHANGES if part in message), "change what Spark names."),
            )
            return


def _is_about(message: str, operators: list[str]) -> bool:
    """Spark speaks of limits, sorting and sampling where we say limit, sort and sample."""
    stems = {word.strip(",").lower()[:5] for operator in operators for word in operator.split()}
    return any(stem in message.lower() for stem in stems & {"limit", "offse", "sort", "sampl", "join", "sessi"})


def _table(size_bytes: int) -> str:
    if size_bytes >= UNKNOWN_BYTES:
        return "Spark does not know the size of the static side, and does not broadcast it automatically."
    return f"Spark estimates the static side at {size_in_words(size_bytes)}."
