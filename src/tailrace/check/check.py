"""`tailrace.check`: the verdict on a query before it runs."""

from __future__ import annotations

import dataclasses

from pyspark.sql import DataFrame, SparkSession

from tailrace._spark.plugin import is_loaded
from tailrace._spark.settings import value_of
from tailrace.check.facts import SAMPLE_MS, Facts, Query, facts_of, session_of
from tailrace.check.rules import RULES, migration
from tailrace.check.verdict import Verdict, in_order
from tailrace.contract.findings import Finding, Severity
from tailrace.errors import TailraceError

WARN_ONLY_KEY = "spark.tailrace.check.warnOnly"


def check(query: Query, *, from_micro_batch: bool = False) -> Verdict:
    """Check whether a query can run in Real-Time Mode, and report every finding at once.

        print(tailrace.check(payments.writeStream.format("kafka")…trigger(realTime="5 minutes")))

    Nothing is started, and nothing is written, neither to the sink nor to the checkpoint.

    :param query: the writer you would call `start()` on, a DataFrame whose sink is not known yet, or a running query.
    :param from_micro_batch: also report what would change for a query that is micro-batch today: a writer with another
        trigger, or a running query.
    """
    require_query(query)
    return verdict_on(facts_of(query, sample_ms=SAMPLE_MS), session_of(query), from_micro_batch=from_micro_batch)


def verdict_on(facts: Facts, spark: SparkSession, *, from_micro_batch: bool = False) -> Verdict:
    # Not in RULES: only a user who asks for it wants to know what changes.
    rules = (*RULES, migration.changes) if from_micro_batch else RULES
    findings = [finding for rule in rules for finding in rule(facts)]
    return Verdict(facts.name, in_order(_relaxed(findings, _warn_only(spark))), facts.shape)


def _relaxed(findings: list[Finding], codes: set[str]) -> list[Finding]:
    """Findings whose codes the user accepted become warnings."""
    return [
        dataclasses.replace(finding, severity=Severity.WARNING)
        if finding.severity is Severity.BLOCKING and finding.code in codes
        else finding
        for finding in findings
    ]


def _warn_only(spark: SparkSession) -> set[str]:
    return {code.strip() for code in (value_of(spark, WARN_ONLY_KEY) or "").split(",") if code.strip()}


def require_query(query: object) -> None:
    if not isinstance(query, Query):
        raise TailraceError(
            "TAILRACE_NOTHING_TO_CHECK",
            f"a {type(query).__name__} is neither a DataFrame, nor its writeStream, nor a query.",
            "check what you would call start() on: tailrace.check(rows.writeStream.format(…)…).",
        )
    if not is_loaded(session_of(query).sparkContext):
        raise TailraceError(
            "TAILRACE_SESSION_NOT_CONFIGURED",
            "this Spark session runs without Tailrace's plugin, which knows how the query would be planned.",
            "make the session with tailrace.configure(SparkSession.builder…).getOrCreate().",
        )
    if isinstance(query, DataFrame) and not query.isStreaming:
        raise TailraceError(
            "TAILRACE_NOTHING_TO_CHECK",
            "this DataFrame is not a stream.",
            "begin with spark.readStream.",
        )
