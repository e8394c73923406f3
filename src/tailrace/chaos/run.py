"""One run: start the queries, inject faults one after the other, wait for recovery, and compare output with input."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tailrace._process.paths import log_file
from tailrace.chaos._settings import checkpoint_of
from tailrace.chaos.delivery import Delivery, Sent, answers_of, compare, rows_due, sent_of
from tailrace.chaos.faults import FAULTS, why_not
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.schedule import Planned, draw
from tailrace.chaos.testbed import Testbed
from tailrace.chaos.testbed_setup import set_up_built_in_queries, set_up_users_query
from tailrace.chaos.topics import read_all
from tailrace.chaos.view import ChaosView
from tailrace.errors import TailraceError

COMMITTED_WITHIN_S = 60
STEPS = ("process", "session", "queries")


@dataclass(frozen=True)
class Round:
    """One fault and what it took to recover from it, in seconds from the fault's end.

    A kill of the driver ends when the next one is launched, which is at once.
    """

    planned: Planned
    recovered_s: dict[str, float]
    """Until each query gave new rows from every partition."""
    steps_s: dict[str, float]
    """How far the start of a driver was: `process`, `session`, `queries`; empty if it was not started again."""
    ended: int
    """How often a query ended, though the driver lived, and was started again."""
    stuck: bool
    """Whether a query gave no rows until its driver was killed once more."""
    driver_ended: int = 0
    """How often the driver ended by itself and was started again."""

    @property
    def slowest_s(self) -> float:
        return max(self.recovered_s.values())


@dataclass(frozen=True)
class ChaosResult:
    options: ChaosOptions
    rounds: list[Round]
    deliveries: dict[str, Delivery]
    unavailable: dict[str, str]
    """Faults that are unavailable here, and why."""
    seconds: float
    log: Path

    def broken(self) -> dict[str, list[str]]:
        """What breaks the promise, by query; empty if every promise is kept."""
        found = {query: delivery.broken(self.options.promise_of(query)) for query, delivery in self.deliveries.items()}
        return {query: texts for query, texts in found.items() if texts}

    def median_steps_s(self) -> dict[str, float]:
        times = {step: [each.steps_s[step] for each in self.rounds if step in each.steps_s] for step in STEPS}
        return {step: statistics.median(seconds) for step, seconds in times.items() if seconds}


def plan(options: ChaosOptions) -> tuple[list[Planned], dict[str, str]]:
    """The schedule, and the faults that are unavailable here, each with the reason."""
    own = options.yours is None
    chosen = [FAULTS[name] for name in options.faults or FAULTS]
    reasons = {fault.name: why_not(fault, own_broker=own, own_queries=own) for fault in chosen}
    unavailable = {name: reason for name, reason in reasons.items() if reason is not None}
    kinds = [fault.kind for fault in chosen if fault.name not in unavailable]
    if not kinds:
        raise TailraceError(
            "TAILRACE_NO_FAULT",
            "none of the faults is available here: " + "; ".join(f"{n}: {why}" for n, why in unavailable.items()),
            "name others with --fault, or omit it for all that are available.",
        )
    return draw(options.seed, options.rounds, kinds), unavailable


def run_chaos(options: ChaosOptions, view: ChaosView) -> ChaosResult:
    begun = time.monotonic()
    schedule, unavailable = plan(options)
    log = log_file("chaos")
    view.introduce(options, schedule, unavailable, log)
    with ExitStack() as stack:
        with view.phase("Starting Apache Kafka" if options.yours is None else "Looking at the topics"):
            if options.yours is None:
                testbed = set_up_built_in_queries(options, log, stack)
            else:
                testbed = set_up_users_query(options.yours, options, log, stack)
        with view.phase("Starting the queries"):
            if not testbed.start():
                raise _no_output(testbed, log)
        rounds = []
        with view.rounds(len(schedule)) as done:
            for planned in schedule:
                if options.seconds is not None and time.monotonic() - begun > options.seconds:
                    break
                rounds.append(_round(testbed, planned, log))
                done(rounds[-1])
        with view.phase("Waiting for the last rows"):
            _settle(testbed, options)
        with view.phase("Comparing output with input"):
            delivery = _deliveries(testbed, options)
    return ChaosResult(options, rounds, delivery, unavailable, time.monotonic() - begun, log)


def _round(testbed: Testbed, planned: Planned, log: Path) -> Round:
    testbed.pause(planned.after_s)
    _note(log, str(planned))
    struck_at = time.monotonic()
    FAULTS[planned.fault].strike(testbed, planned)
    over_at = time.monotonic()
    stuck = not testbed.wait_until_flowing()
    if stuck:
        _note(log, "no new rows: killing the driver again")
        testbed.restart_driver()
        if not testbed.wait_until_flowing():
            raise _no_output(testbed, log)
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
    )


def _settle(testbed: Testbed, options: ChaosOptions) -> None:
    """End the load and wait until every row is out and committed, or none has come for long."""
    testbed.load.stop()
    testbed.watcher.last_new_at = time.monotonic()
    sent = _sent(testbed, options)
    due = {query: rows_due(query.partition("/")[0], sent) for query in testbed.queries}
    while any(due.values()) and time.monotonic() - testbed.watcher.last_new_at < options.patience_s:
        due = {query: testbed.watcher.missing(query, rows) for query, rows in due.items()}
        testbed.start_again_if_ended()
        testbed.pause(0.2)
    if testbed.checkpoints is not None:
        _wait_for_commits(testbed, testbed.checkpoints.parent)


def _wait_for_commits(testbed: Testbed, folder: Path) -> None:
    """One more commit of each query: what an epoch writes at its end is then in the output too."""
    before = {query: _last_commit(folder, query) for query in testbed.queries}
    deadline = time.monotonic() + COMMITTED_WITHIN_S
    while time.monotonic() < deadline and any(_last_commit(folder, q) <= number for q, number in before.items()):
        testbed.start_again_if_ended()
        testbed.pause(0.2)


def _last_commit(folder: Path, query: str) -> int:
    names = (entry.name for entry in (checkpoint_of(folder, query) / "commits").glob("*"))
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _deliveries(testbed: Testbed, options: ChaosOptions) -> dict[str, Delivery]:
    """From the topics as they are now, read anew: not from what was seen on the way."""
    sent = _sent(testbed, options)
    numbers = [each.record.number for each in sent]
    if numbers != list(range(testbed.load.sent)):
        raise TailraceError(
            "TAILRACE_HARNESS_FAILED",
            f"the input topic holds {len(numbers)} records, not the {testbed.load.sent} that were sent, once each.",
            "make sure that nothing else writes to it.",
        )
    field = options.yours.id_field if options.yours is not None else "number"
    return {
        query: compare(
            query.partition("/")[0],
            sent,
            answers_of(read_all(testbed.bootstrap_servers, testbed.outputs[query]), field),
        )
        for query in testbed.queries
    }


def _sent(testbed: Testbed, options: ChaosOptions) -> list[Sent]:
    id_field = options.yours.id_field if options.yours is not None else None
    return sent_of(read_all(testbed.bootstrap_servers, testbed.load.topic), id_field)


def _note(log: Path, text: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"=== chaos: {text}\n")


def _no_output(testbed: Testbed, log: Path) -> TailraceError:
    silent = [query for query in testbed.queries if testbed.flowing_since(query) is None]
    return TailraceError(
        "TAILRACE_NO_OUTPUT",
        f"no new rows from every partition of {', '.join(silent)}.",
        f"check that the query runs, writes to the output topic and has enough task slots; its log is {log}",
    )
