"""Where the rows go."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts
from tailrace.contract.findings import Finding, blocking, warning
from tailrace.contract.query_description import StateDescription

# Kafka's producer waits that long by default for more records to send along.
DEFAULT_LINGER_MS = 5
EXACTLY_ONCE = ("tailrace-kafka", "tailrace-postgresql", "tailrace-redis")
STORES = {"tailrace-postgresql": "PostgreSQL", "tailrace-redis": "Redis"}
# What a sink found in its output and can live with.
WARNINGS = ("TAILRACE_REDIS_NOT_DURABLE",)
KAFKA_SINKS = ("kafka", "tailrace-kafka")
KAFKA_TYPES = {"key": ("STRING", "BINARY"), "value": ("STRING", "BINARY"), "topic": ("STRING",), "partition": ("INT",)}


def unsupported(facts: Facts) -> Iterator[Finding]:
    if facts.writer and not facts.writer.sink.supported:
        sink = facts.writer.sink
        yield blocking(
            "TAILRACE_UNSUPPORTED_SINK",
            f"sink {sink.name}",
            sink.problem,
            sink.fix,
        )


def output_mode(facts: Facts) -> Iterator[Finding]:
    if facts.writer is None:
        return
    mode, may_append = facts.writer.output_mode, facts.described.may_append
    outer = next((join for join in facts.described.stream_joins if join.outer), None)
    if mode == "update" and outer is not None and may_append:
        yield blocking(
            "TAILRACE_OUTPUT_MODE",
            "output mode",
            f"a {outer.kind} join of two streams supports only the output mode 'append': a row without a match "
            "is written once, when its time is over, and never changed.",
            '.outputMode("append").',
            outer.line,
        )
    elif mode == "append" and may_append and (open_ended := _sessions_without_end(facts)) is not None:
        yield blocking(
            "TAILRACE_OUTPUT_MODE",
            "output mode",
            "'append' writes sessions when they are closed, and without a watermark none ever is.",
            '.withWatermark("timestamp", "10 minutes") before the groupBy; or .outputMode("update").',
            open_ended.line,
        )
    elif mode != "update" and not (mode == "append" and may_append):
        modes = _possible_modes(facts)
        changed = "an aggregation then writes each changed row, and any other query writes the same rows as before"
        yield blocking(
            "TAILRACE_OUTPUT_MODE",
            "output mode",
            f"in Real-Time Mode this query supports only the output mode{'s' if len(modes) > 1 else ''} "
            f"{' and '.join(map(repr, modes))}, and it has '{mode}'"
            f"{', which is also the default' if mode == 'append' else ''}.",
            f'.outputMode("{modes[0]}"){f": {changed}" if modes[0] == "update" else ""}.',
        )


def _possible_modes(facts: Facts) -> tuple[str, ...]:
    if not facts.described.may_append:
        return ("update",)
    return ("append",) if any(join.outer for join in facts.described.stream_joins) else ("update", "append")


def _sessions_without_end(facts: Facts) -> StateDescription | None:
    kept = facts.described.state
    return next((state for state in kept if state.name == "session window" and not state.bounded), None)


def no_row_identity(facts: Facts) -> Iterator[Finding]:
    """The exactly-once sink recognizes a replayed row by the record it was made from, or a match by its content."""
    if facts.writer is None or facts.writer.format not in EXACTLY_ONCE:
        return
    for found in facts.described.identity_obstacles:
        yield blocking(found.code, found.title, found.problem, found.fix, found.line)


def matches_to_store(facts: Facts) -> Iterator[Finding]:
    if facts.writer is not None and facts.writer.format in STORES and facts.described.stream_joins:
        sink = facts.writer.format
        yield blocking(
            "TAILRACE_NO_ROW_IDENTITY",
            f"sink {sink}",
            f"{sink} does not recognize the matches of two streams after a replay.",
            f'write the matches to a topic with format("tailrace-kafka"), and from there to {STORES[sink]} with a '
            "second query.",
            facts.described.stream_joins[0].line,
        )


def output_problems(facts: Facts) -> Iterator[Finding]:
    """What the sink found in its output: the server, the table, its columns, its key, the user's rights."""
    # Source and sink are often one cluster: what keeps a user out of it is told once.
    of_sources = {(one.problem.code, one.problem.message) for one in facts.described.sources if one.problem}
    for found in facts.writer.output_problems if facts.writer else ():
        if (found.code, found.problem) in of_sources:
            continue
        finding = warning if found.code in WARNINGS else blocking
        yield finding(found.code, found.title, found.problem, found.fix)


def kafka_columns(facts: Facts) -> Iterator[Finding]:
    # A query that runs has what it needs, and its options are not described.
    if facts.writer is None or facts.writer.format not in KAFKA_SINKS or facts.described.running:
        return
    columns = {column.name: column.sql_type for column in facts.described.columns}
    missing = []
    if "value" not in columns:
        missing.append(('a column "value"', 'add .select(F.to_json(F.struct("*")).alias("value"))'))
    if "topic" not in columns and facts.sink_option("topic") is None:
        missing.append(("a topic", 'add .option("topic", "…") or a column "topic"'))
    if facts.sink_option("kafka.bootstrap.servers") is None:
        missing.append(("the brokers", 'add .option("kafka.bootstrap.servers", "…")'))
    for name, types in KAFKA_TYPES.items():
        if name in columns and columns[name] not in types:
            wanted = " or ".join(types)
            missing.append(
                (f'the column "{name}" as {wanted}, not {columns[name]}', f'cast it: .cast("{types[0].lower()}")')
            )
    for what, change in missing:
        yield blocking(
            "TAILRACE_KAFKA_SINK", f"sink {facts.writer.format}", f"the Kafka sink needs {what}.", f"{change}."
        )


def lingers(facts: Facts) -> Iterator[Finding]:
    linger = facts.sink_option("kafka.linger.ms")
    if linger is not None and linger.isdigit() and int(linger) > DEFAULT_LINGER_MS:
        yield warning(
            "TAILRACE_SINK_LINGERS",
            "sink kafka",
            f"the sink keeps each row back for up to {linger} ms to send others along: kafka.linger.ms.",
            'remove it, or .option("kafka.linger.ms", "0"); under load batches fill by themselves.',
        )


def error_policy(facts: Facts) -> Iterator[Finding]:
    """What is to become of a record that cannot be processed."""
    for found in facts.writer.error_policy_problems if facts.writer else ():
        yield blocking(found.code, found.title, found.problem, found.fix)
