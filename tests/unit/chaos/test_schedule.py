"""The schedule: the same for the same seed, with every kind of fault in turn."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path

import pytest

from tailrace import TailraceError
from tailrace.chaos import ChaosOptions, UsersQuery
from tailrace.chaos.expected import EXPECTED
from tailrace.chaos.faults import FAULTS, MOST_PARTITIONS
from tailrace.chaos.run import plan
from tailrace.chaos.schedule import LONGEST_CALM_S, Kind, draw
from tailrace.chaos.testbed_setup import PARTITIONS
from tailrace.chaos.workloads import WORKLOADS
from tailrace.cli.chaos import Workloads
from tests.helpers.processes import tailrace as tailrace_cli
from tests.helpers.tree import ROOT

KINDS = [fault.kind for fault in FAULTS.values()]
ONE_BAG = sum(kind.weight for kind in KINDS)


def test_the_same_seed_draws_the_same() -> None:
    assert draw(7, 50, KINDS) == draw(7, 50, KINDS)
    assert draw(7, 50, KINDS) != draw(8, 50, KINDS)


def test_a_longer_one_begins_with_the_shorter() -> None:
    assert draw(7, 50, KINDS)[:20] == draw(7, 20, KINDS)


def test_each_kind_has_its_turn() -> None:
    drawn = Counter(planned.fault for planned in draw(7, ONE_BAG, KINDS))
    assert drawn == {kind.name: kind.weight for kind in KINDS}


def test_no_more_than_there_may_be() -> None:
    drawn = Counter(planned.fault for planned in draw(7, 300, KINDS))
    assert drawn["topic-partition"] == MOST_PARTITIONS - PARTITIONS
    assert drawn.total() == 300
    assert len(draw(7, 10, [Kind("rare", weight=5, at_most=3)])) == 3, "a bag that stays empty ends the schedule"


def test_times_are_within_their_bounds() -> None:
    for planned in draw(7, 300, KINDS):
        shortest, longest = FAULTS[planned.fault].kind.lasts_s
        assert shortest <= planned.lasts_s <= longest
        assert 0 <= planned.after_s <= LONGEST_CALM_S
        assert 0 <= planned.pick <= 1


def test_it_is_printed_without_running_anything() -> None:
    printed = tailrace_cli("chaos", "--dry-run", "--rounds", "40", "--seed", "11")
    assert printed.returncode == 0, printed.stderr
    expected = [plan(ChaosOptions(rounds=20, seed=seed))[0] for seed in (11, 12)]
    assert printed.stdout.splitlines() == [str(planned) for piece in expected for planned in piece]


YOURS = ChaosOptions(yours=UsersQuery(Path("app.py"), (), "127.0.0.1:1", "in", "out"))


def test_a_users_broker_is_not_ours_to_harm() -> None:
    schedule, unavailable = plan(dataclasses.replace(YOURS, rounds=100))
    assert {planned.fault for planned in schedule}.isdisjoint(unavailable)
    assert {name for name in FAULTS if name.startswith("broker-")} <= unavailable.keys()
    assert "driver-kill" in {planned.fault for planned in schedule}


def test_nothing_left_to_do() -> None:
    with pytest.raises(TailraceError) as failure:
        plan(dataclasses.replace(YOURS, faults=("broker-kill",)))
    assert failure.value.code == "TAILRACE_NO_FAULT"


def test_a_template_without_its_number() -> None:
    assert YOURS.yours is not None
    YOURS.yours.require_readable_template()
    for template in ("{}", '{"id": 1}', "not json", '{"id": $number}'):
        with pytest.raises(TailraceError) as failure:
            dataclasses.replace(YOURS.yours, template=template).require_readable_template()
        assert failure.value.code == "TAILRACE_BAD_TEMPLATE"


@pytest.mark.parametrize(
    "arguments",
    [("--fault", "flood"), ("--workload", "dance"), (__file__,)],
)
def test_a_mistyped_command(arguments: tuple[str, ...]) -> None:
    result = tailrace_cli("chaos", *arguments)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr


def test_every_fault_is_documented() -> None:
    rows = table("Faults")
    assert {name: what.replace("`", "") for name, what in rows.items()} == {f.name: f.what for f in FAULTS.values()}


def test_every_query_is_documented_and_has_a_judge() -> None:
    assert table("Built-in queries").keys() == WORKLOADS.keys()
    assert WORKLOADS.keys() - {"changing"} == EXPECTED.keys() - {"yours"}, "compare_changes judges that one"
    assert {each.value for each in Workloads} == {"all", *WORKLOADS}


def table(section: str) -> dict[str, str]:
    """The table of a section of the page, by its first column."""
    page = (ROOT / "docs/operate/chaos.md").read_text()
    text = page.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", text, re.MULTILINE))
