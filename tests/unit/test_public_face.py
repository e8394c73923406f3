from __future__ import annotations

from importlib import metadata

import tailrace
from tailrace import results
from tests.helpers.processes import run_python

EXPORTED = {
    "EmbeddedKafka",
    "EmbeddedPostgres",
    "EmbeddedRedis",
    "TailraceError",
    "__version__",
    "check",
    "configure",
    "dashboard",
    "drain",
    "drop_duplicates",
    "explain",
    "latency",
    "measure",
    "session_status",
    "size",
}


def test_the_face_is_narrow_and_documented() -> None:
    assert set(tailrace.__all__) == EXPORTED
    for name in EXPORTED - {"__version__"}:
        assert getattr(tailrace, name).__doc__, f"{name} has no documentation"


def test_what_functions_return_can_be_named() -> None:
    assert set(results.__all__) == {
        "Distribution",
        "Drained",
        "Explanation",
        "Finding",
        "Latency",
        "Measurement",
        "QueryFigures",
        "QueryStatus",
        "Severity",
        "Sizing",
        "Verdict",
    }
    for name in results.__all__:
        assert getattr(results, name).__doc__, f"{name} has no documentation"


def test_the_version_is_the_distributions() -> None:
    assert tailrace.__version__ == metadata.version("tailrace")


def test_importing_has_no_side_effects() -> None:
    result = run_python(
        "import threading, tailrace\n"
        "from pyspark import SparkContext\n"
        "assert SparkContext._gateway is None\n"
        "assert threading.active_count() == 1\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert result.stderr == ""
