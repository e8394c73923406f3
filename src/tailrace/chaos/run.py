"""A run: its pieces one after the other, on one bench. What is done is saved, so another command can continue it."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tailrace._process.paths import cache_folder
from tailrace.chaos import state_file
from tailrace.chaos.faults import FAULTS, why_not
from tailrace.chaos.options import YOURS, ChaosOptions
from tailrace.chaos.piece import deliveries, no_output, note, one_round, sent_records, settle
from tailrace.chaos.pieces import pieces
from tailrace.chaos.reference import check_against_references
from tailrace.chaos.result import ChaosResult, PieceResult, Round, Tally
from tailrace.chaos.schedule import Planned, draw
from tailrace.chaos.summary import write_summary
from tailrace.chaos.testbed import Testbed
from tailrace.chaos.testbed_setup import Bench, set_up_bench, set_up_piece, set_up_users_query
from tailrace.chaos.view import ChaosView
from tailrace.chaos.workloads import STORES, WORKLOADS, refuse_not_in_stores
from tailrace.errors import TailraceError

KEPT_FOLDERS = 9
# So many pieces in a row that cannot be finished are not chance.
MOST_UNFINISHED = 3


def plan(options: ChaosOptions) -> tuple[list[Planned], dict[str, str]]:
    """The schedule of a piece, and the faults that are unavailable in it, each with the reason."""
    own = options.yours is None
    changing = own and any(WORKLOADS[workload].versions > 1 for workload in options.workloads)
    chosen = [FAULTS[name] for name in options.faults or FAULTS]
    store = own and any(sink in STORES for sink in options.sinks)
    reasons = {
        fault.name: why_not(fault, own_broker=own, own_queries=own, changing=changing, store=store) for fault in chosen
    }
    unavailable = {name: reason for name, reason in reasons.items() if reason is not None}
    kinds = [fault.kind for fault in chosen if fault.name not in unavailable]
    if not kinds:
        raise TailraceError(
            "TAILRACE_NO_FAULT",
            "none of the faults is available here: " + "; ".join(f"{n}: {why}" for n, why in unavailable.items()),
            "name others with --fault, or omit it for all that are available.",
        )
    return draw(options.seed, options.rounds, kinds), unavailable


def run_chaos(options: ChaosOptions, view: ChaosView, folder: Path | None = None) -> ChaosResult:
    """Run the pieces that are not done yet.

    :param folder: where the state is kept, and where a run that was interrupted is continued. If none is given, a
        new one next to the logs.
    """
    begun = time.monotonic()
    if options.yours is None:
        refuse_not_in_stores(options.workloads, options.sinks)
    planned = pieces(options)
    reasons = [plan(piece)[1] for piece in planned]
    unavailable = {name: why for name, why in reasons[0].items() if all(name in each for each in reasons)}
    folder = folder or _new_folder()
    result = state_file.load(folder) if state_file.has_state(folder) else ChaosResult(options, [], folder)
    result = replace(result, options=options)
    left = list(enumerate(planned))[len(result.pieces) :]
    view.introduce(result, planned, unavailable, folder)
    _save(result, folder)

    def is_over() -> bool:
        return options.seconds is not None and time.monotonic() - begun > options.seconds

    with ExitStack() as stack, view.rounds(sum(piece.rounds for piece in planned), len(result.rounds)) as done:
        bench = None
        for number, piece in left:
            if result.pieces and is_over():
                break
            log = folder / f"piece-{number + 1:03}.log"
            if bench is None and piece.yours is None:
                with view.phase("Starting Apache Kafka"):
                    bench = set_up_bench(planned, log, stack)
            finished = _run_piece(bench, number, piece, log, view, done, is_over, only_piece=len(planned) == 1)
            result.pieces.append(finished)
            _save(result, folder)
            view.verdict(finished, number + 1, len(planned))
            if all(each.failure for each in result.pieces[-MOST_UNFINISHED:]) and len(result.pieces) >= MOST_UNFINISHED:
                break
            if len(planned) > 1 and finished.is_good:
                log.unlink(missing_ok=True)
    return result


def _run_piece(
    bench: Bench | None,
    number: int,
    piece: ChaosOptions,
    log: Path,
    view: ChaosView,
    done: Callable[[Round], None],
    is_over: Callable[[], bool],
    *,
    only_piece: bool,
) -> PieceResult:
    begun = time.monotonic()
    schedule, unavailable = plan(piece)
    rounds: list[Round] = []
    tallies: dict[str, Tally] = {}
    failure = ""
    try:
        with ExitStack() as stack:
            with view.phase(f"Setting up the topics of seed {piece.seed}"):
                testbed = _set_up(bench, piece, number, log, stack)
            stack.push(_killing_after_failure(testbed))
            note(log, f"seed {piece.seed}, epochs of {piece.epoch_s} s: {', '.join(piece.queries)}")
            with view.phase("Starting the queries"):
                if not testbed.start():
                    raise no_output(testbed, log)
            for planned in schedule:
                if is_over():
                    break
                rounds.append(one_round(testbed, planned, log))
                done(rounds[-1])
            with view.phase("Waiting for the last rows"):
                settle(testbed, piece)
            with view.phase("Comparing output with input"):
                found = deliveries(testbed, piece, log)
            reference = ""
            if piece.yours is not None and piece.yours.reference:
                with view.phase("Running your query twice without a fault"):
                    testbed.driver.kill()
                    sent = sent_records(testbed, piece)
                    reference = check_against_references(piece.yours, found[YOURS], sent, log)
            tallies = {query: Tally.of(each, piece.promise_of(query), reference) for query, each in found.items()}
            testbed.stop_queries()
    except TailraceError as problem:
        if only_piece:
            raise
        failure = f"{problem.code}: {problem.problem}"
    return PieceResult(piece, rounds, tallies, unavailable, time.monotonic() - begun, log, failure)


def _killing_after_failure(testbed: Testbed) -> Callable[..., None]:
    """Whatever state the driver is in when a piece fails, it must not run on while its topics are deleted."""

    def leave(kind: type[BaseException] | None, *_details: object) -> None:
        if kind is not None:
            testbed.driver.kill()

    return leave


def _set_up(bench: Bench | None, piece: ChaosOptions, number: int, log: Path, stack: ExitStack) -> Testbed:
    if piece.yours is not None:
        return set_up_users_query(piece.yours, piece, log, stack)
    assert bench is not None
    return set_up_piece(bench, piece, number, log, stack)


def _save(result: ChaosResult, folder: Path) -> None:
    state_file.save(result, folder)
    write_summary(result, folder)


def _new_folder() -> Path:
    """Beside the logs of other commands; the newest few are kept."""
    logs = cache_folder("logs")
    for old in sorted(path for path in logs.glob("chaos-*") if path.is_dir())[:-KEPT_FOLDERS]:
        with contextlib.suppress(OSError):
            shutil.rmtree(old)
    return logs / f"chaos-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
