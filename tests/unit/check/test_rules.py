"""The findings of each check rule, from facts made up for it."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

import pytest

from tailrace import TailraceError
from tailrace.check.facts import Facts, Settings
from tailrace.check.formatting import duration_in_words, size_in_words
from tailrace.check.rules import RULES, advice, migration
from tailrace.check.slots import Holder, Slots
from tailrace.check.verdict import Verdict, in_order
from tailrace.contract.codec import decode, field_types
from tailrace.contract.findings import Finding, Severity
from tailrace.contract.query_description import QueryDescription

SOURCE = {
    "name": "kafka",
    "label": "kafka: payments",
    "options": {"kafka.bootstrap.servers": "broker:9092", "subscribe": "payments"},
    "real_time": True,
    "topics": ["payments"],
    "ages_ms": [],
}
STAGE = {"number": 0, "inputs": [], "sources": ["kafka: payments"], "operators": [], "tasks": 2}
CHECKPOINT = {"location": "/checkpoint", "exists": False, "offsets": [], "operators": []}
SINK = {"name": "kafka", "supported": True}


def facts(
    *,
    settings: dict[str, str] | None = None,
    slots: Slots | None = None,
    running: dict[str, str] | None = None,
    batch_ms: int | None = None,
    **changes: Any,
) -> Facts:
    """A query about which there is nothing to say but its guarantee."""
    writer = {
        "format": "kafka",
        "output_mode": "update",
        "trigger": {"real_time_ms": 300_000},
        "options": {"kafka.bootstrap.servers": "broker:9092", "topic": "decisions"},
        "sink": SINK,
        **changes.pop("writer", {}),
    }
    described = {
        "columns": [{"name": "value", "sql_type": "STRING"}],
        "epoch_ms": 300_000,
        "shortest_epoch_ms": 5000,
        "sources": [SOURCE],
        "same_source_twice": [],
        "refused": [],
        "stages": [STAGE],
        "stateful": False,
        "state": [],
        "state_before_union": [],
        "watermarks": [],
        "windows": [],
        "python": [],
        "checkpoint": CHECKPOINT,
        "writer": writer,
        **changes,
    }
    description = decode(QueryDescription, completed(QueryDescription, described))
    return Facts(description, Settings(settings or {}), slots or Slots("local[8]", 8), running or {}, batch_ms=batch_ms)


def completed(kind: Any, given: Any) -> Any:
    """The JSON with the fields that a case does not care about."""
    if dataclasses.is_dataclass(kind):
        rest = {name: EMPTY.get(of) for name, of in field_types(kind).items() if name not in given}
        return {name: completed(field_types(kind).get(name), value) for name, value in {**rest, **given}.items()}
    inner = [one for one in typing.get_args(kind) if dataclasses.is_dataclass(one)]
    if inner and isinstance(given, list):
        return [completed(inner[0], one) for one in given]
    return (
        completed(inner[0], given) if inner and given is not None else [] if given is None and _is_list(kind) else given
    )


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple


EMPTY: dict[Any, Any] = {bool: False, str: ""}


def found(given: Facts) -> dict[str, Finding]:
    return {finding.code: finding for rule in RULES for finding in rule(given)}


def only(given: Facts, code: str, severity: Severity = Severity.WARNING) -> Finding:
    """The one finding beside the guarantee."""
    findings = found(given)
    assert set(findings) == {code, "TAILRACE_GUARANTEE"}
    assert findings[code].severity is severity
    return findings[code]


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
    finding = only(facts(epoch_ms=5000), "TAILRACE_SHORT_EPOCHS")
    assert "4.0%" in finding.detail
    assert 'realTime="30 seconds"' in finding.fix
    stateful = facts(epoch_ms=15_000, stateful=True)
    assert "2.7%" in only(stateful, "TAILRACE_SHORT_EPOCHS").detail
    assert "TAILRACE_SHORT_EPOCHS" not in found(facts(epoch_ms=30_000))


def test_the_shortest_epoch_is_the_sessions() -> None:
    assert "TAILRACE_EPOCH_TOO_SHORT" not in found(facts(epoch_ms=3000, shortest_epoch_ms=2000))
    finding = found(facts(epoch_ms=50_000, shortest_epoch_ms=60_000))["TAILRACE_EPOCH_TOO_SHORT"]
    assert 'realTime="1 minute"' in finding.fix, "what is advised is allowed"


def shuffled(tasks: int, **more: Any) -> Facts:
    return facts(stages=[STAGE, {"number": 1, "inputs": [0], "sources": [], "operators": [], "tasks": tasks}], **more)


def test_slots_add_up() -> None:
    finding = only(shuffled(200), "TAILRACE_TOO_FEW_SLOTS", Severity.BLOCKING)
    assert "2 + 200 = 202" in finding.detail
    assert 'spark.conf.set("spark.sql.shuffle.partitions", 6)' in finding.fix
    assert set(found(shuffled(6))) == {"TAILRACE_GUARANTEE"}


def test_slots_of_other_queries_count() -> None:
    slots = Slots("local[8]", 8, (Holder("id", "alerts", 5),))
    finding = only(shuffled(4, slots=slots), "TAILRACE_TOO_FEW_SLOTS", Severity.BLOCKING)
    assert "5 by 'alerts'" in finding.detail
    assert "stop another query" in finding.fix


def test_a_checkpoint_decides_the_number_of_partitions() -> None:
    """State is divided into as many as there were."""
    kept = {**CHECKPOINT, "operators": ["stateStoreSave"]}
    settings = {"spark.sql.shuffle.partitions": "9"}
    finding = found(shuffled(9, settings=settings, checkpoint=kept, stateful=True))["TAILRACE_TOO_FEW_SLOTS"]
    assert "shuffle.partitions" not in finding.fix
    assert "shuffle.partitions" in found(shuffled(9, settings=settings))["TAILRACE_TOO_FEW_SLOTS"].fix


def test_slots_that_are_not_known_block_nothing() -> None:
    assert set(found(shuffled(200, slots=Slots("yarn", None), settings={"spark.sql.shuffle.partitions": "200"}))) == {
        "TAILRACE_GUARANTEE"
    }


def test_partitions_that_nobody_has_chosen() -> None:
    finding = only(shuffled(200, slots=Slots("spark://…", 400)), "TAILRACE_DEFAULT_SHUFFLE_PARTITIONS")
    assert "200 tasks" in finding.detail
    chosen = shuffled(200, slots=Slots("spark://…", 400), settings={"spark.sql.shuffle.partitions": "200"})
    assert set(found(chosen)) == {"TAILRACE_GUARANTEE"}


@pytest.mark.parametrize(
    ("key", "code"),
    [("spark.speculation", "TAILRACE_SPECULATION"), ("spark.dynamicAllocation.enabled", "TAILRACE_DYNAMIC_ALLOCATION")],
)
def test_settings_that_spark_refuses_with_a_shuffle(key: str, code: str) -> None:
    cluster = Slots("spark://host:7077", 8)
    assert key in only(facts(settings={key: "true"}, slots=cluster), code).fix
    assert key in only(shuffled(2, settings={key: "true"}, slots=cluster), code, Severity.BLOCKING).fix
    assert code not in found(facts(settings={key: "false"}, slots=cluster))


def test_dynamic_allocation_means_nothing_on_one_machine() -> None:
    assert set(found(shuffled(2, settings={"spark.dynamicAllocation.enabled": "true"}))) == {"TAILRACE_GUARANTEE"}


def test_a_neighbour_that_takes_slots_in_turns() -> None:
    assert "'reports'" in only(shuffled(2, running={"id": "reports"}), "TAILRACE_SHARED_SLOTS").detail
    slots = Slots("local[8]", 8, (Holder("id", "alerts", 2),))
    for fine in (shuffled(2, running={"id": "alerts"}, slots=slots), facts(running={"id": "reports"})):
        assert set(found(fine)) == {"TAILRACE_GUARANTEE"}, "a real-time one is counted; without a shuffle a task waits"


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


def changes_for(**more: Any) -> dict[str, Finding]:
    writer = {"trigger": {"interval_ms": 1000}, **more.pop("writer", {})}
    return {finding.title: finding for finding in migration.changes(facts(writer=writer, **more))}


def test_what_changes_for_a_micro_batch_query() -> None:
    changes = changes_for(batch_ms=400, checkpoint={**CHECKPOINT, "epoch": 3, "commit_version": "v2"})
    assert 'processingTime="1 second"' in changes["trigger"].detail
    assert 'realTime="5 minutes"' in changes["trigger"].fix
    assert "output mode" not in changes
    assert "400 ms" in changes["latency"].detail
    assert "can be kept" in changes["checkpoint"].detail
    assert "2 slots" in changes["task slots"].detail
    assert "up to 5 minutes" in changes["duplicates"].detail
    assert list(migration.changes(facts())) == []


@pytest.mark.parametrize(
    ("mode", "state", "told"),
    [
        ("append", [], "the rows stay the same"),
        ("append", [{"name": "aggregation", "bounded": True}], "instead of one final row"),
        ("complete", [{"name": "aggregation", "bounded": False}], "instead of the whole result"),
    ],
)
def test_what_another_output_mode_means(mode: str, state: list[Any], told: str) -> None:
    assert told in changes_for(writer={"output_mode": mode}, state=state)["output mode"].detail


def test_a_checkpoint_that_cannot_be_kept() -> None:
    kept = {
        **CHECKPOINT,
        "exists": True,
        "epoch": 3,
        "commit_version": "v1",
        "offsets": [{"payments": {"0": 7, "1": 9}}],
    }
    finding = only(facts(checkpoint=kept), "TAILRACE_CHECKPOINT_FORMAT", Severity.BLOCKING)
    assert """.option("startingOffsets", '{"payments":{"0":7,"1":9}}')""" in finding.fix
    assert "cannot be kept" in changes_for(checkpoint=kept)["checkpoint"].detail


def verdict(*severities: Severity) -> Verdict:
    findings = [Finding(f"TAILRACE_{n}", severity, "here", "wrong.", "right.") for n, severity in enumerate(severities)]
    return Verdict("payments", in_order(findings), facts().shape)


def test_a_verdict_names_the_gravest_first() -> None:
    given = verdict(Severity.NOTE, Severity.BLOCKING, Severity.WARNING, Severity.BLOCKING)
    assert [finding.severity.value for finding in given.findings] == ["blocking", "blocking", "warning", "note"]
    assert given.summary == "blocked (2 blocking, 1 warning, 1 note)"
    assert given.to_dict()["blocked"] is True
    assert str(given).splitlines()[0] == "payments: blocked (2 blocking, 1 warning, 1 note)"
    with pytest.raises(TailraceError) as failure:
        given.raise_if_blocked()
    assert failure.value.code == "TAILRACE_CHECK_FAILED"
    assert "[TAILRACE_1]" in failure.value.problem
    assert "[TAILRACE_3]" in failure.value.problem


def test_one_reason_has_its_own_code() -> None:
    with pytest.raises(TailraceError) as failure:
        verdict(Severity.BLOCKING, Severity.NOTE).raise_if_blocked()
    assert failure.value.code == "TAILRACE_0"
    assert not verdict(Severity.WARNING).blocked
    verdict(Severity.WARNING).raise_if_blocked()
    assert verdict().summary == "clear"


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(500, "500 milliseconds"), (1500, "1.5 seconds"), (60_000, "1 minute"), (5_400_000, "1 hour 30 minutes")],
)
def test_durations_are_as_a_trigger_takes_them(milliseconds: int, said: str) -> None:
    assert duration_in_words(milliseconds) == said


@pytest.mark.parametrize(("size", "said"), [(90, "90 bytes"), (1536, "1.5 KiB"), (52_428_800, "50 MiB")])
def test_sizes_in_words(size: int, said: str) -> None:
    assert size_in_words(size) == said


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
