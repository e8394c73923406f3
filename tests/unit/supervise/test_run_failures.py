"""What a restart fixes, by texts that Spark, Kafka and Python printed (in failures/, our own lines kept current)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.contract.run_status import RecordRange
from tailrace.supervise.run.failures import Cure, diagnose
from tailrace.supervise.run.known_failures import CURABLE_CODES, KNOWN_FAILURES
from tailrace.supervise.run.restarts import Restarts
from tests.helpers.tree import ROOT

SAID = Path(__file__).parent / "failures"

CASES = {
    "import": ("PROGRAM_ERROR", Cure.NONE),
    "syntax": ("PROGRAM_ERROR", Cure.NONE),
    "analysis": ("UNRESOLVED_COLUMN.WITH_SUGGESTION", Cure.NONE),
    "refuse": ("TAILRACE_OUTPUT_MODE", Cure.NONE),
    "topic": ("TAILRACE_TOPIC_MISSING", Cure.NONE),
    "unknown-option": ("CANNOT_START", Cure.NONE),
    "unknown-master": ("CANNOT_START", Cure.NONE),
    "concurrent": ("STREAMING_ASYNC_OPERATION_FAILED", Cure.NONE),
    "dataloss": ("DATA_LOSS", Cure.NONE),
    "udfimport": ("PYTHON_EXCEPTION", Cure.NONE),
    "executor": ("EXECUTOR_LOST", Cure.RESTART),
    "outgone": ("TOPIC_MISSING", Cure.NONE),
    "bad-record": ("PYTHON_EXCEPTION", Cure.ONCE),
    "workerdie": ("TAILRACE_PYTHON_WORKER_LOST", Cure.ONCE),
    "refused": ("PYTHON_EXCEPTION", Cure.RESTART),
}


def said(name: str) -> str:
    return (SAID / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_what_was_said(name: str) -> None:
    failure = diagnose(said(name), 1)
    assert (failure.code, failure.cure) == CASES[name]
    assert failure.problem
    assert failure.fix


def test_every_text_is_a_case() -> None:
    assert {file.stem for file in SAID.glob("*.txt")} == set(CASES)


def test_the_record_and_the_query_are_named() -> None:
    failure = diagnose(said("bad-record"), 1)
    assert failure.problem == "ValueError: cannot score 7"
    assert failure.query == "scores"
    assert failure.run_id == "c1ae3f37-c83b-4a24-b590-c5ff066a50b3"
    assert failure.records == (RecordRange("in-483df150", 0, 7, 7),)


def test_one_of_several_records() -> None:
    assert diagnose(said("workerdie"), 1).records == (RecordRange("in-a1ccf056", 0, 1, 16),)


def test_an_outage_is_not_the_records_fault() -> None:
    failure = diagnose(said("refused"), 1)
    assert failure.problem == "ConnectionRefusedError: redis is down"
    assert failure.records, "but it is told"
    assert not failure.has_record_of(failure)


@pytest.mark.parametrize(("exit_code", "name"), [(137, "SIGKILL"), (139, "SIGSEGV"), (143, "SIGTERM")])
def test_a_signal_tells_more_than_what_was_printed(exit_code: int, name: str) -> None:
    failure = diagnose(said("import"), exit_code)
    assert (failure.code, failure.cure) == ("KILLED", Cure.RESTART)
    assert name in failure.problem


@pytest.mark.parametrize("text", ["", "It ends here.\n", "26/11/16 WARN NetworkClient: AuthenticationException\n"])
def test_what_nobody_knows_is_tried_again(text: str) -> None:
    failure = diagnose(text, 3)
    assert (failure.code, failure.cure) == ("UNKNOWN", Cure.RESTART)
    assert "3" in failure.problem


def test_only_the_last_error_counts() -> None:
    """A script that logs an error and goes on does not fail by it."""
    failure = diagnose(said("import") + "and on it goes\n" + said("bad-record"), 1)
    assert failure.code == "PYTHON_EXCEPTION"


@pytest.mark.parametrize(
    ("why", "cure"),
    [
        ("Timed out waiting for a node assignment", Cure.RESTART),
        ("Unexpected handshake request with client mechanism PLAIN, enabled mechanisms are []", Cure.NONE),
    ],
)
def test_a_source_that_does_not_open(why: str, cure: Cure) -> None:
    text = f"Traceback (most recent call last):\nTailraceError: [TAILRACE_SOURCE_REFUSED] {why}\nFix: correct it."
    assert diagnose(text, 1).cure == cure


def test_several_findings_are_cured_if_each_is() -> None:
    text = "Traceback (most recent call last):\nTailraceError: [TAILRACE_CHECK_FAILED] two.\n{}\nFix: correct them."
    curable = "TAILRACE_BROKER_UNREACHABLE no answer\nTAILRACE_PORT_TAKEN taken"
    assert diagnose(text.format(curable), 1).cure == Cure.RESTART
    assert diagnose(text.format(curable + "\nTAILRACE_OUTPUT_MODE complete"), 1).cure == Cure.NONE


def test_the_codes_that_are_cured_exist() -> None:
    known = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in CURABLE_CODES if f"`{code}`" not in known] == []


def test_the_same_place() -> None:
    first = diagnose(said("bad-record"), 1)
    moved = diagnose(said("bad-record").replace("offset 7:", "offset 8:"), 1)
    elsewhere = diagnose(said("bad-record").replace("partition 0", "partition 1"), 1)
    around = diagnose(said("bad-record").replace("offset 7:", "offsets 3 to 9:"), 1)
    assert first.has_record_of(first)
    assert around.has_record_of(first)
    assert not moved.has_record_of(first)
    assert not elsewhere.has_record_of(first)
    assert not first.has_record_of(None)
    assert not diagnose("", 1).has_record_of(diagnose("", 1)), "unknown is not the same"


def test_delays_double_up_to_the_limit() -> None:
    restarts = Restarts(5, first_delay_s=2, longest_delay_s=10)
    assert [restarts.next_delay_s(lambda: 1.0) for _ in range(6)] == [2, 4, 8, 10, 10, None]


def test_delays_are_spread() -> None:
    assert Restarts(1, first_delay_s=2).next_delay_s(lambda: 0.0) == 1


def test_good_health_makes_restarts_available_again() -> None:
    restarts = Restarts(1, stable_after_s=600)
    assert restarts.next_delay_s() is not None
    restarts.healthy_for(599)
    assert restarts.next_delay_s() is None
    restarts.healthy_for(600)
    assert restarts.next_delay_s() is not None


def test_the_codes_of_incidents_are_documented() -> None:
    """With what a restart does about each."""
    page = (ROOT / "docs/operate/operations.md").read_text(encoding="utf-8")
    for known in KNOWN_FAILURES:
        assert f"| `{known.code}` | {'yes' if known.curable else 'no'} |" in page
    assert [code for code in ("PYTHON_EXCEPTION", "KILLED", "UNKNOWN") if f"| `{code}` |" not in page] == []
