"""One piece of a run: inject faults one after the other, wait for recovery, and compare output with input."""

from __future__ import annotations

import json
import time
from pathlib import Path

from tailrace.chaos.changes import compare_changes
from tailrace.chaos.delivery import EXAMPLES, Delivery, answers_of, compare, rows_due, sent_of
from tailrace.chaos.expected import Sent
from tailrace.chaos.faults import FAULTS
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.pieces import SHORT_EPOCH_S
from tailrace.chaos.result import STEPS, Round
from tailrace.chaos.schedule import Planned
from tailrace.chaos.testbed import Testbed
from tailrace.chaos.topics import read_all
from tailrace.chaos.workloads import WORKLOADS, QueryName
from tailrace.errors import TailraceError

COMMITTED_WITHIN_S = 60


def one_round(testbed: Testbed, planned: Planned, log: Path) -> Round:
    begun = time.monotonic()
    testbed.pause(planned.after_s)
    note(log, str(planned))
    in_a_row = testbed.own.note_fault() if testbed.own is not None else 1
    struck_at, at_record = time.monotonic(), testbed.load.sent
    FAULTS[planned.fault].strike(testbed, planned)
    over_at = time.monotonic()
    stuck = not testbed.wait_until_flowing()
    if stuck:
        note(log, "no new rows: killing the driver again")
        testbed.restart_driver()
        if not testbed.wait_until_flowing():
            raise no_output(testbed, log)
    recovered = {query: testbed.flowing_since(query) or time.monotonic() for query in testbed.queries}
    since = [event for event in list(testbed.events) if event.at >= struck_at]
    started_at = testbed.driver.started_at
    steps = {event.name: event.at - started_at for event in since if event.name in STEPS and event.at >= started_at}
    return Round(
        planned,
        {query: at - over_at for query, at in recovered.items()},
        steps,
        sum(event.name == "ended" for event in since),
        stuck,
        sum(event.name == "driver-ended" for event in since),
        time.monotonic() - begun,
        in_a_row,
        at_record,
        next((event.reason for event in since if event.name == "change-refused"), ""),
    )


def settle(testbed: Testbed, options: ChaosOptions) -> None:
    """End the load and wait until every row is out and committed, or none has come for long."""
    testbed.load.stop()
    testbed.watcher.last_new_at = time.monotonic()
    sent = sent_records(testbed, options)
    coalesced = [query for query in testbed.queries if _is_coalesced(testbed, query)]
    due = {query: rows_due(_workload(query), sent) for query in testbed.queries if query not in coalesced}
    ends = {each.partition: each.offset + 1 for each in sorted(sent, key=lambda each: each.offset)}

    def is_settled() -> bool:
        return not any(due.values()) and all(
            testbed.own is not None and testbed.own.have_committed(query, ends) for query in coalesced
        )

    while not is_settled() and time.monotonic() - testbed.watcher.last_new_at < options.patience_s:
        due = {query: testbed.watcher.missing(query, rows) for query, rows in due.items()}
        testbed.start_again_if_ended()
        testbed.pause(0.2)
    if testbed.own is not None:
        # One more run with short epochs, without new input: what it makes of the last records stays.
        begun = time.monotonic()
        testbed.own.restart(epoch_s=SHORT_EPOCH_S)
        testbed.wait_for_queries("started", since=begun)
        _wait_for_commits(testbed)


def _wait_for_commits(testbed: Testbed) -> None:
    """One more commit of each query: what an epoch writes at its end is then in the output too."""
    assert testbed.own is not None
    before = testbed.own.commits()
    deadline = time.monotonic() + COMMITTED_WITHIN_S
    while time.monotonic() < deadline and any(now <= before[q] for q, now in testbed.own.commits().items()):
        testbed.start_again_if_ended()
        testbed.pause(0.2)


def deliveries(testbed: Testbed, options: ChaosOptions, log: Path) -> dict[str, Delivery]:
    """From the topics as they are now, read again: not from what was seen on the way.

    What the topic holds of a few keys whose last record is wrong goes to the log.
    """
    sent = sent_records(testbed, options)
    numbers = [each.record.number for each in sent]
    if numbers != list(range(testbed.load.sent)):
        raise TailraceError(
            "TAILRACE_HARNESS_FAILED",
            f"the input topic holds {len(numbers)} records, not the {testbed.load.sent} that were sent, once each.",
            "make sure that nothing else writes to it.",
        )
    return {query: _delivery(testbed, options, query, sent, log) for query in testbed.queries}


def _delivery(testbed: Testbed, options: ChaosOptions, query: str, sent: list[Sent], log: Path) -> Delivery:
    field = options.yours.id_field if options.yours is not None else "number"
    by = QueryName.parse(query).part
    store = testbed.stores.get(QueryName.parse(query).sink)
    answers = {
        output: answers_of(
            store.writes(output) if store is not None else read_all(testbed.bootstrap_servers, output), field, by
        )
        for output in testbed.outputs[query]
    }
    workload = _workload(query)
    if workload in WORKLOADS and WORKLOADS[workload].versions > 1:
        assert testbed.own is not None
        return compare_changes(sent, answers, testbed.own.changes[query])
    in_order = [answer for found in answers.values() for answer in found]
    final = None
    if store is not None and WORKLOADS[workload].keyed:
        final = [answer for output in answers for answer in answers_of(store.last(output), field)]
    delivery = compare(workload, sent, in_order, final=final, coalesced=_is_coalesced(testbed, query))
    for key in delivery.wrong_keys[:EXAMPLES]:
        history = [json.dumps({"number": answer.number, **answer.fields}) for answer in in_order if answer.key == key]
        note(log, f"{query}, wrong last record of {key}; all its records: {' '.join(history)}")
    return delivery


def _is_coalesced(testbed: Testbed, query: str) -> bool:
    """Whether a row of the output may stand for several: the last update of a key in a batch."""
    name = QueryName.parse(query)
    return name.sink in testbed.stores and testbed.stores[name.sink].coalesces and WORKLOADS[name.workload].keyed


def _workload(query: str) -> str:
    return QueryName.parse(query).workload


def sent_records(testbed: Testbed, options: ChaosOptions) -> list[Sent]:
    id_field = options.yours.id_field if options.yours is not None else None
    return sent_of(read_all(testbed.bootstrap_servers, testbed.load.topic), id_field)


def note(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"=== chaos: {text}\n")


def no_output(testbed: Testbed, log: Path) -> TailraceError:
    silent = [query for query in testbed.queries if testbed.flowing_since(query) is None]
    return TailraceError(
        "TAILRACE_NO_OUTPUT",
        f"no new rows from every partition of {', '.join(silent)}.",
        f"check that the query runs, writes to the output topic and has enough task slots; its log is {log}",
    )
