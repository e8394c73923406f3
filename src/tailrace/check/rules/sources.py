"""What a query reads, and how."""

from __future__ import annotations

from collections.abc import Iterator

from tailrace.check.facts import Facts, option
from tailrace.check.formatting import listed
from tailrace.contract.findings import Finding, blocking, warning
from tailrace.contract.query_description import SourceDescription

NOT_IN_REAL_TIME = (
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "endingTimestamp",
)
# Kafka's own default: how long a broker waits for fetch.min.bytes.
FETCH_MAX_WAIT_MS = 500
OLD_MS, ENOUGH_RECORDS = 20, 10


def unsupported(facts: Facts) -> Iterator[Finding]:
    for source in _once(facts):
        if not source.real_time and not source.problem:
            yield blocking(
                "TAILRACE_UNSUPPORTED_SOURCE",
                f"source {source.name}",
                f"the source '{source.name}' delivers rows in batches; Real-Time Mode needs a source that delivers "
                "them as they arrive.",
                "read from Kafka, or run the query in micro-batch.",
                source.line,
            )


def unreachable(facts: Facts) -> Iterator[Finding]:
    for source in _once(facts):
        problem = source.problem
        if not problem:
            continue
        servers = option(source.options, "kafka.bootstrap.servers")
        if problem.kind == "no_topic":
            topic = option(source.options, "subscribe") or option(source.options, "assign")
            yield blocking(
                "TAILRACE_TOPIC_MISSING",
                f"source {source.name}",
                f"the topic {topic} does not exist at {servers}.",
                "create it first, with one partition for each task that should read it.",
                source.line,
            )
        elif problem.code is not None:
            # A wrong password, an untrusted certificate, a missing right: waiting does not help.
            yield blocking(problem.code, f"source {source.name}", problem.message, problem.fix or "", source.line)
        elif problem.kind == "unreachable":
            # A broker may be restarting, and Spark would wait for it.
            yield (warning if facts.at_start else blocking)(
                "TAILRACE_BROKER_UNREACHABLE",
                f"source {source.name}",
                f"no broker answers at {servers}: {problem.message}",
                "check the address and that the broker runs; for a secured cluster, also kafka.security.protocol.",
                source.line,
            )
        else:
            yield blocking(
                "TAILRACE_SOURCE_REFUSED",
                f"source {source.name}",
                f"the source does not open: {problem.message}",
                "correct its options.",
                source.line,
            )


def same_twice(facts: Facts) -> Iterator[Finding]:
    for label in facts.described.same_source_twice:
        yield blocking(
            "TAILRACE_SAME_SOURCE_TWICE",
            f"source {label}",
            "the query reads the same DataFrame twice, and Spark's Real-Time Mode would read each record only once.",
            "call spark.readStream…load() once for each side; or do the work in one pass, as in "
            "explode(array(…)) instead of a union with itself.",
        )


def options(facts: Facts) -> Iterator[Finding]:
    for source in _once(facts):
        given = [name for name in NOT_IN_REAL_TIME if option(source.options, name) is not None]
        if source.real_time and given:
            names = listed([f"'{name}'" for name in given])
            yield blocking(
                "TAILRACE_SOURCE_OPTION",
                f"source {source.label}",
                f"the options {names} split the input into batches, and an epoch has none."
                if len(given) > 1
                else f"the option {names} splits the input into batches, and an epoch has none.",
                f"remove {names}.",
                source.line,
            )


def fetch_waits(facts: Facts) -> Iterator[Finding]:
    for source in _once(facts):
        least = option(source.options, "kafka.fetch.min.bytes")
        if least is not None and least.isdigit() and int(least) > 1:
            longest = option(source.options, "kafka.fetch.max.wait.ms") or str(FETCH_MAX_WAIT_MS)
            yield warning(
                "TAILRACE_FETCH_WAITS",
                f"source {source.label}",
                f"the broker holds records back until it has {least} bytes, or for {longest} ms: "
                "kafka.fetch.min.bytes.",
                'remove it, or set .option("kafka.fetch.min.bytes", "1").',
                source.line,
            )


def old_records(facts: Facts) -> Iterator[Finding]:
    for source in _once(facts):
        ages = sorted(source.ages_ms)
        if len(ages) < ENOUGH_RECORDS or (median := ages[len(ages) // 2]) < OLD_MS:
            continue
        yield warning(
            "TAILRACE_RECORDS_ARRIVE_OLD",
            f"source {source.label}",
            f"of {len(ages)} records that just arrived, half were at least {median} ms old when they could first be "
            f"read (the oldest {ages[-1]} ms), by their own timestamps.",
            "look at the producer: linger.ms and batch.size (a record waits for others), retries, or a clock that is "
            "slow. No setting of this query can recover that time.",
            source.line,
        )


def _once(facts: Facts) -> list[SourceDescription]:
    """A source that is read twice has its own finding, and otherwise one of each kind."""
    return list({source.label + str(source.line): source for source in facts.described.sources}.values())
