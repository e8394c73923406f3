"""How long a start waits for slots, tested without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.check import slot_wait
from tailrace.errors import NotReadyError

SPARK: Any = None
Fake = Callable[..., None]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Slots that are free, and the canceled tasks of each look at them."""

    def fake(*, free: list[int], canceled: dict[str, int], wait_s: float = 60) -> None:
        looks = iter(free)
        monkeypatch.setattr(slot_wait, "free_slots", lambda _: next(looks))
        monkeypatch.setattr(slot_wait, "canceled_tasks", lambda _: canceled)
        monkeypatch.setattr(slot_wait, "_wait_s", lambda _: wait_s)

    return fake


def test_free_slots_are_not_waited_for(cluster: Fake) -> None:
    cluster(free=[4], canceled={"driver": 2})
    slot_wait.wait_for_slots(SPARK, 4)


def test_slots_that_canceled_tasks_release_are_waited_for(cluster: Fake) -> None:
    cluster(free=[2, 3, 4], canceled={"driver": 2})
    slot_wait.wait_for_slots(SPARK, 4)


def test_slots_of_others_are_not_waited_for(cluster: Fake) -> None:
    """What other queries hold is the check's matter."""
    cluster(free=[2], canceled={})
    slot_wait.wait_for_slots(SPARK, 4)


def test_a_query_of_unknown_size_does_not_wait(cluster: Fake) -> None:
    cluster(free=[], canceled={"driver": 2})
    slot_wait.wait_for_slots(SPARK, None)


def test_the_error_names_what_holds_the_slots(cluster: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster(free=[1] * 1000, canceled={"1": 2, "7": 1}, wait_s=0)
    monkeypatch.setattr(slot_wait, "ended_queries", lambda: ["scores"])
    with pytest.raises(NotReadyError) as refused:
        slot_wait.wait_for_slots(SPARK, 4)
    assert refused.value.code == "TAILRACE_SLOTS_NOT_RELEASED"
    for named in ("scores", "2 on executor 1", "1 on executor 7", "needs 4"):
        assert named in refused.value.problem
