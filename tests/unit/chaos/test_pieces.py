"""Pieces of a long run: which queries and seeds they have, and that a state file continues where it ended."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace import TailraceError
from tailrace.chaos import ChaosOptions, ChaosResult, state_file
from tailrace.chaos.delivery import Delivery, Promise
from tailrace.chaos.faults import FAULTS
from tailrace.chaos.pieces import LONG_EPOCH_S, MOST_TOGETHER, SHORT_EPOCH_S, pieces, repeat_command
from tailrace.chaos.report import to_dict
from tailrace.chaos.result import PieceResult, Round, Tally
from tailrace.chaos.run import plan
from tailrace.chaos.schedule import Planned
from tailrace.chaos.summary import summary
from tailrace.chaos.workloads import SINKS, STORES, WORKLOADS, refuse_not_in_stores
from tests.helpers.processes import tailrace as tailrace_cli

LONG = ChaosOptions(rounds=1000, workloads=tuple(WORKLOADS), sinks=SINKS)


def test_a_short_run_is_one_piece_with_all_queries() -> None:
    options = ChaosOptions(rounds=20, sinks=SINKS)
    assert pieces(options) == [replace(options, epoch_s=SHORT_EPOCH_S)]


def test_a_long_run_has_every_query_with_short_and_long_epochs() -> None:
    found = pieces(LONG)
    assert sum(piece.rounds for piece in found) == 1000
    assert [piece.seed for piece in found] == list(range(7, 57))
    epochs = Counter((query, piece.epoch_s) for piece in found for query in piece.queries)
    assert epochs.keys() == {(query, epoch_s) for query in LONG.queries for epoch_s in (SHORT_EPOCH_S, LONG_EPOCH_S)}
    assert all(len(piece.workloads) <= MOST_TOGETHER for piece in found)


def test_a_longer_run_begins_with_the_shorter() -> None:
    assert pieces(LONG)[:10] == pieces(replace(LONG, rounds=200))
    assert pieces(replace(LONG, rounds=215))[-1].rounds == 15


def test_a_piece_is_repeated_by_its_command() -> None:
    piece = pieces(replace(LONG, faults=("query-stop",), rate=200))[7]
    command = shlex.split(repeat_command(piece))
    assert command[:2] == ["tailrace", "chaos"]
    printed = tailrace_cli(*command[1:], "--dry-run")
    assert printed.returncode == 0, printed.stderr
    alone = pieces(replace(piece, rounds=20))
    assert alone == [piece]
    assert len(printed.stdout.splitlines()) == piece.rounds


def piece_of(options: ChaosOptions, delivery: Delivery) -> PieceResult:
    rounds = [
        Round(Planned(n, "query-stop", 1.0, 0.0, 0.5), dict.fromkeys(options.queries, 2.0), {}, 0, False, 0, 6.0, n)
        for n in range(1, options.rounds + 1)
    ]
    tallies = {query: Tally.of(delivery, Promise.of(query)) for query in options.queries}
    return PieceResult(options, rounds, tallies, {"restarts": "not now"}, 130.0, Path("piece.log"))


@pytest.fixture
def result() -> ChaosResult:
    """Three pieces, of which the second lost two rows and has a wrong last record."""
    options = replace(LONG, rounds=60)
    good = Delivery(1000, 900, 900, out_of_order=[], keys=10)
    bad = replace(good, lost=[3, 4], wrong_keys=["k1-2"])
    return ChaosResult(options, [piece_of(p, d) for p, d in zip(pieces(options), (good, bad, good), strict=True)])


def test_the_state_is_what_was_saved(result: ChaosResult, tmp_path: Path) -> None:
    state_file.save(result, tmp_path)
    assert state_file.has_state(tmp_path)
    assert state_file.load(tmp_path) == replace(result, folder=tmp_path)


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", '{"options": {"rounds": 3}}', '{"options": {}, "pieces": [{}]}', "\0"]
)
def test_a_state_that_cannot_be_read(content: str, tmp_path: Path) -> None:
    (tmp_path / state_file.NAME).write_text(content)
    with pytest.raises(TailraceError) as failure:
        state_file.load(tmp_path)
    assert failure.value.code == "TAILRACE_NO_CHAOS_STATE"


def test_the_sum_of_all_pieces(result: ChaosResult) -> None:
    found = to_dict(result)
    assert len(found["rounds"]) == 60
    assert not found["guarantees_held"]
    assert [bool(piece["broken"]) for piece in found["pieces"]] == [False, True, False]
    query = result.pieces[1].options.queries[0]
    assert (found["queries"][query]["lost"], found["queries"][query]["wrong_keys"]) == (2, 1)
    assert found["queries"][query]["examples"] == {"lost": [3, 4], "wrong_keys": ["k1-2"]}
    again = replace(result, pieces=[*result.pieces, *result.pieces])
    assert to_dict(again)["queries"][query]["lost"] == 4
    assert to_dict(again)["queries"][query]["keys"] == 20


def test_the_summary_names_seeds_and_commands(result: ChaosResult) -> None:
    page = summary(result)
    failed = result.pieces[1].options
    assert f"Seed {failed.seed}:" in page
    assert repeat_command(failed) in page
    assert page.count("\nSeed ") == 1
    assert "| query-stop | 60 |" in page
    for query in failed.queries:
        assert f"| `{query}` | " in page
    assert "No round" in summary(replace(result, pieces=[]))


class TestResume:
    @pytest.fixture
    def folder(self, result: ChaosResult, tmp_path: Path) -> Path:
        """All pieces are done: nothing is left to run."""
        state_file.save(result, tmp_path)
        return tmp_path

    def test_a_finished_run_is_reported(self, folder: Path) -> None:
        ran = tailrace_cli("chaos", "--resume", str(folder), "--json")
        assert ran.returncode == 1, "one piece failed"
        assert "TAILRACE_GUARANTEE_BROKEN" in ran.stderr
        assert "--seed 8" in ran.stderr
        found = json.loads(ran.stdout)
        assert len(found["rounds"]) == 60
        assert (folder / "summary.md").exists()

    def test_options_of_another_run_are_refused(self, folder: Path) -> None:
        ran = tailrace_cli("chaos", "--resume", str(folder), "--seed", "5")
        assert ran.returncode == 2
        assert "seed" in ran.stderr

    def test_it_can_be_made_longer(self, folder: Path) -> None:
        ran = tailrace_cli("chaos", "--resume", str(folder), "--rounds", "80", "--dry-run")
        assert len(ran.stdout.splitlines()) == 80


@pytest.mark.parametrize("workload", [name for name, each in WORKLOADS.items() if each.not_in_stores])
def test_a_query_that_a_store_cannot_take_is_refused(workload: str) -> None:
    for store in STORES:
        with pytest.raises(TailraceError) as failure:
            refuse_not_in_stores(("stateless", workload), (store,))
        assert failure.value.code == "TAILRACE_WORKLOAD_NOT_FOR_SINK"
    refuse_not_in_stores((workload,), SINKS)


def test_faults_of_a_store_need_one_and_leave_other_schedules_as_they_are() -> None:
    in_store, store_faults = ChaosOptions(rounds=60, sinks=("redis",)), {n for n in FAULTS if n.startswith("store-")}
    assert store_faults <= {each.fault for each in plan(in_store)[0]}
    assert plan(in_store)[0] == plan(replace(in_store, sinks=("postgresql",)))[0], "a seed has one schedule"
    planned, unavailable = plan(ChaosOptions(rounds=60))
    assert store_faults <= unavailable.keys()
    assert not store_faults & {each.fault for each in planned}


def test_a_store_is_named_in_the_command_that_repeats_a_piece() -> None:
    assert "--sink redis" in repeat_command(pieces(ChaosOptions(sinks=("redis",)))[0])
