"""All findings together: their order, the error, and words for durations and sizes."""

from __future__ import annotations

import pytest

from tailrace import TailraceError
from tailrace.check.formatting import duration_in_words, size_in_words
from tailrace.check.verdict import Verdict, in_order
from tailrace.contract.findings import Finding, Severity
from tests.unit.check.made_up import facts


def verdict(*severities: Severity) -> Verdict:
    findings = [Finding(f"TAILRACE_{n}", severity, "here", "wrong.", "right.") for n, severity in enumerate(severities)]
    return Verdict("payments", in_order(findings), facts().shape)


def test_a_verdict_names_the_most_severe_first() -> None:
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
