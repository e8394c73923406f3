"""What the dashboard's `/health` answers."""

from __future__ import annotations

import pytest

from tailrace.dashboard import Dashboard
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.unit.dashboard.asking import ask


@pytest.mark.parametrize(
    ("statuses", "health", "http_status", "strict"),
    [
        ([], "idle", 200, 200),
        (["ended"], "idle", 200, 200),
        (["running"], "ready", 200, 200),
        (["running", "ended"], "ready", 200, 200),
        (["starting", "running"], "starting", 200, 200),
        (["running", "lagging", "starting"], "lagging", 200, 503),
        (["running", "lagging", "failed"], "failed", 503, 503),
    ],
)
def test_health_is_that_of_the_worst_query(
    dashboard: Dashboard, monitor: SyntheticMonitor, statuses: list[str], health: str, http_status: int, strict: int
) -> None:
    monitor.queries = [make_query(f"q-{status}", status=status, error="why") for status in statuses]
    answer = ask(dashboard, "/health")
    assert (answer.status, answer.json()["status"]) == (http_status, health)
    assert ask(dashboard, "/health?strict=1").status == strict
    assert ask(dashboard, "/health?strict=0").status == http_status


def test_health_says_which_query_it_is(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    failed = make_query("alerts", status="failed", error="SparkException: boom\n\tat somewhere")
    monitor.queries += [make_query("slow", status="lagging"), failed]
    assert ask(dashboard, "/health").json() == {
        "status": "failed",
        "queries": {"ready": ["fraud"], "lagging": ["slow"], "failed": ["alerts"]},
        "errors": {"alerts": "SparkException: boom"},
        "reasons": {},
    }


def test_health_says_why_a_query_is_starting(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries = [make_query("slow", status="starting")]
    answer = ask(dashboard, "/health").json()
    assert answer["reasons"] == {"slow": "nothing has been read yet"}


def test_a_restart_makes_up_for_the_failure_before_it(dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
    monitor.queries.append({**make_query("fraud", status="failed", ran_s=5000), "run_id": "the run before"})
    assert ask(dashboard, "/health").json()["status"] == "ready"
    assert b'tailrace_query_up{query="fraud"} 1.0' in ask(dashboard, "/metrics").body
