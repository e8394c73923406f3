"""The findings of each check rule, from facts made up for it."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.check.rules import advice
from tailrace.check.slots import Slots
from tailrace.contract.findings import Severity
from tests.unit.check.made_up import CHECKPOINT, SOURCE, STAGE, facts, found, only


def test_there_is_nothing_to_say_of_a_sound_query() -> None:
    assert set(found(facts())) == {"TAILRACE_GUARANTEE"}


@pytest.mark.parametrize(
    ("mode", "may_append", "outer", "possible", "chosen"),
    [
        ("append", False, False, "the output mode 'update', and it has 'append', which is also the default", "update"),
        ("complete", False, False, "the output mode 'update', and it has 'complete'.", "update"),
        ("complete", True, False, "the output modes 'update' and 'append', and it has 'complete'.", "update"),
        ("complete", True, True, "the output mode 'append', and it has 'complete'.", "append"),
    ],
)
def test_the_output_modes_that_are_possible(
    mode: str, may_append: bool, outer: bool, possible: str, chosen: str
) -> None:
    joins = [{"kind": "left outer", "outer": outer}]
    finding = found(facts(writer={"output_mode": mode}, may_append=may_append, stream_joins=joins))[
        "TAILRACE_OUTPUT_MODE"
    ]
    assert possible in finding.detail
    assert finding.fix.startswith(f'.outputMode("{chosen}")')


def test_a_broker_that_waits() -> None:
    source = {**SOURCE, "options": {"Kafka.Fetch.Min.Bytes": "100000", "kafka.fetch.max.wait.ms": "900"}}
    finding = only(facts(sources=[source]), "TAILRACE_FETCH_WAITS")
    assert "100000 bytes" in finding.detail
    assert "900 ms" in finding.detail
    assert "TAILRACE_FETCH_WAITS" not in found(facts(sources=[{**SOURCE, "options": {"kafka.fetch.min.bytes": "1"}}]))


def test_a_producer_that_lingers_is_seen_in_the_records() -> None:
    finding = only(facts(sources=[{**SOURCE, "ages_ms": [0, 40, 80, 120, 160] * 4}]), "TAILRACE_RECORDS_ARRIVE_OLD")
    assert "of 20 records" in finding.detail
    assert "linger.ms" in finding.fix
    for young_or_few in ([1, 2, 3] * 10, [200] * 5):
        assert "TAILRACE_RECORDS_ARRIVE_OLD" not in found(facts(sources=[{**SOURCE, "ages_ms": young_or_few}]))


def test_a_sink_that_lingers() -> None:
    options = {"kafka.bootstrap.servers": "broker:9092", "topic": "decisions"}
    lingering = facts(writer={"options": {**options, "kafka.linger.ms": "100"}})
    assert "100 ms" in only(lingering, "TAILRACE_SINK_LINGERS").detail
    assert "TAILRACE_SINK_LINGERS" not in found(facts(writer={"options": {**options, "kafka.linger.ms": "0"}}))


def test_epochs_whose_boundaries_make_the_tail() -> None:
    no_overlap = {"spark.tailrace.epochs.overlap": "off"}
    finding = only(facts(epoch_ms=5000, settings=no_overlap), "TAILRACE_SHORT_EPOCHS")
    assert "4.0%" in finding.detail
    assert 'realTime="30 seconds"' in finding.fix
    stateful = facts(epoch_ms=15_000, stateful=True, settings=no_overlap)
    assert "2.7%" in only(stateful, "TAILRACE_SHORT_EPOCHS").detail
    assert "TAILRACE_SHORT_EPOCHS" not in found(facts(epoch_ms=30_000, settings=no_overlap))


@pytest.mark.parametrize(
    "processor", ["transformWithState (JVM)", "transformWithState, transformWithStateInPandas (Python)"]
)
def test_short_epochs_that_overlap_have_no_pause(processor: str) -> None:
    code = "TAILRACE_SHORT_EPOCHS"
    stages = [{**STAGE, "operators": [{"name": processor, "stateful": True, "overlaps": True}]}]
    once = {"format": "tailrace-kafka"}
    assert code not in found(facts(epoch_ms=5000))
    assert code not in found(facts(epoch_ms=5000, stages=stages))
    assert code not in found(facts(epoch_ms=5000, writer=once))
    watermark = {"column": "at", "delay_ms": 1000, "line": None}
    for not_overlapping in (
        facts(epoch_ms=5000, slots=Slots("local[3]", 3)),
        facts(epoch_ms=1999),
        facts(epoch_ms=5000, stages=stages, watermarks=[watermark]),
        facts(epoch_ms=5000, stages=stages, writer=once),
        facts(epoch_ms=5000, writer={**once, "options": {"transactionInterval": "20ms"}}),
    ):
        assert code in found(not_overlapping)


def test_the_shortest_epoch_is_the_sessions() -> None:
    assert "TAILRACE_EPOCH_TOO_SHORT" not in found(facts(epoch_ms=3000, shortest_epoch_ms=2000))
    finding = found(facts(epoch_ms=50_000, shortest_epoch_ms=60_000))["TAILRACE_EPOCH_TOO_SHORT"]
    assert 'realTime="1 minute"' in finding.fix, "what is advised is allowed"


def test_a_checkpoint_in_use_is_taken_over_unless_told_otherwise() -> None:
    kept, running = {**CHECKPOINT, "query_id": "id"}, {"id": "before"}
    taken_over = only(facts(checkpoint=kept, running=running), "TAILRACE_CHECKPOINT_IN_USE")
    assert "Spark will stop it" in taken_over.detail
    settings = {"spark.sql.streaming.stopActiveRunOnRestart": "false"}
    only(facts(checkpoint=kept, running=running, settings=settings), "TAILRACE_CHECKPOINT_IN_USE", Severity.BLOCKING)


def test_a_root_for_checkpoints_needs_a_name() -> None:
    given = found(facts(checkpoint=None, settings={"spark.sql.streaming.checkpointLocation": "/checkpoints"}))
    assert given["TAILRACE_NO_CHECKPOINT"].severity is Severity.WARNING
    assert found(facts(checkpoint=None))["TAILRACE_NO_CHECKPOINT"].severity is Severity.BLOCKING


def test_rows_that_kafka_has_deleted() -> None:
    source = {**SOURCE, "options": {"failOnDataLoss": "false"}}
    assert "deleted before they were read" in advice.guarantee_of(facts(sources=[source]))


def test_a_function_that_pickles() -> None:
    python = [{"name": "score", "pickled": True, "line": "app.py:7"}, {"name": "fast", "pickled": False}]
    finding = only(facts(python=python), "TAILRACE_PICKLED_UDF")
    assert finding.title == "udf score"
    assert finding.line == "app.py:7"


def test_sparks_own_list_refuses_our_operators() -> None:
    operators = [{"name": "udf", "ours": True, "line": "app.py:3"}]
    settings = {"spark.sql.streaming.realTimeMode.allowlistCheck": "true"}
    given = facts(stages=[{**STAGE, "operators": operators}], settings=settings)
    assert only(given, "TAILRACE_ALLOWLIST_IN_FORCE", Severity.BLOCKING).line == "app.py:3"
    assert set(found(facts(settings=settings))) == {"TAILRACE_GUARANTEE"}


@pytest.mark.parametrize(
    ("state", "windows", "code"),
    [
        ({"name": "dropDuplicates", "bounded": False}, [], "TAILRACE_UNBOUNDED_STATE"),
        ({"name": "dropDuplicates", "bounded": True}, [], None),
        ({"name": "aggregation", "bounded": False}, [{"length_ms": 60_000}], "TAILRACE_UNBOUNDED_STATE"),
        ({"name": "aggregation", "bounded": True}, [{"length_ms": 60_000}], None),
        ({"name": "aggregation", "bounded": False}, [], "TAILRACE_STATE_PER_KEY"),
    ],
)
def test_state_that_grows(state: dict[str, Any], windows: list[Any], code: str | None) -> None:
    given = found(facts(state=[state], windows=windows, stateful=True))
    assert set(given) - {"TAILRACE_GUARANTEE"} == ({code} if code else set())


def test_how_late_a_row_may_be() -> None:
    watermark = {"column": "timestamp", "delay_ms": 10_000}
    finding = only(facts(watermarks=[watermark]), "TAILRACE_LATENESS", Severity.NOTE)
    assert "10 minutes 10 seconds" in finding.detail, "the delay and two epochs"
    key = "spark.tailrace.watermark.idleAfter"
    assert key not in finding.detail
    finding = only(facts(watermarks=[watermark], settings={key: "30s"}), "TAILRACE_LATENESS", Severity.NOTE)
    assert f"{key} is 30s" in finding.detail


def test_the_guarantee_in_one_sentence() -> None:
    assert advice.guarantee_of(facts()).startswith("At least once: no row is lost; after a failure or a stop")
    assert "up to 5 minutes" in advice.guarantee_of(facts())
    assert "counts each row exactly once" in advice.guarantee_of(facts(stateful=True))
    assert "your function again" in advice.guarantee_of(facts(writer={"format": "foreach"}))
    assert advice.guarantee_of(facts(checkpoint=None)).startswith("None across restarts")


def test_when_micro_batch_would_do() -> None:
    hours = [{"length_ms": 3_600_000}]
    finding = only(facts(windows=hours), "TAILRACE_MICRO_BATCH_WOULD_DO", Severity.NOTE)
    assert "windows of 1 hour" in finding.detail
    for decides in ({"python": [{"name": "score", "pickled": False}]}, {"writer": {"format": "foreach"}}):
        assert "TAILRACE_MICRO_BATCH_WOULD_DO" not in found(facts(windows=hours, **decides))
    assert "TAILRACE_MICRO_BATCH_WOULD_DO" not in found(facts(windows=[{"length_ms": 60_000}]))


def test_the_exactly_once_sink_says_what_it_promises() -> None:
    once = {"format": "tailrace-kafka"}
    plain = advice.guarantee_of(facts(writer=once))
    assert plain.startswith("Exactly once")
    assert "not fenced" in plain
    options = {"kafka.bootstrap.servers": "broker:9092", "topic": "decisions", "transactionInterval": "20 ms"}
    fenced = advice.guarantee_of(facts(writer={**once, "options": options}))
    assert "not fenced" not in fenced
    assert "read committed" in fenced


def test_rows_that_cannot_be_told_apart_have_no_exactly_once_sink() -> None:
    once = {"format": "tailrace-kafka"}
    outer = {"code": "TAILRACE_NO_ROW_IDENTITY", "title": "outer join", "problem": "…", "fix": "…", "line": "app.py:8"}
    assert only(facts(writer=once, identity_obstacles=[outer]), outer["code"], Severity.BLOCKING).line == "app.py:8"
    assert outer["code"] not in found(facts(identity_obstacles=[outer]))
