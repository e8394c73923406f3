"""The outcome of a check."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tailrace.check.description import QueryShape
from tailrace.contract import notebook
from tailrace.contract.findings import Finding, Severity, most_severe_first
from tailrace.errors import QueryRefusedError

SIGNS = {Severity.BLOCKING: "✗", Severity.WARNING: "!", Severity.NOTE: "·"}
ORDER = list(Severity)


@dataclass(frozen=True)
class Verdict:
    """Every finding about one query, most serious first."""

    name: str
    findings: tuple[Finding, ...]
    shape: QueryShape
    started_at: str | None = None
    """The user's line that starts it, if it is known."""

    @property
    def blocked(self) -> bool:
        """True if a finding keeps the query from starting."""
        return any(finding.severity is Severity.BLOCKING for finding in self.findings)

    def of(self, severity: Severity) -> list[Finding]:
        """The findings of one severity."""
        return [finding for finding in self.findings if finding.severity is severity]

    def raise_if_blocked(self) -> None:
        """Raise one error with every blocking finding, if there is any."""
        reasons = self.of(Severity.BLOCKING)
        if not reasons:
            return
        if len(reasons) == 1:
            [only] = reasons
            raise QueryRefusedError(only.code, f"{only.detail}{f' See {only.line}.' if only.line else ''}", only.fix)
        raise QueryRefusedError(
            "TAILRACE_CHECK_FAILED",
            f"{len(reasons)} reasons keep this query from running in Real-Time Mode:\n"
            + "\n".join(f"- [{one.code}] {one.heading}: {one.detail}" for one in reasons),
            "\n".join(["", *(f"- {one.title}: {one.fix}" for one in reasons)]),
        )

    @property
    def summary(self) -> str:
        """The verdict and the number of findings, in words."""
        counts = [(len(self.of(severity)), severity) for severity in ORDER]
        said = [
            f"{count} {severity.value}{'s' if severity.value != 'blocking' and count > 1 else ''}"
            for count, severity in counts
            if count
        ]
        return ("blocked" if self.blocked else "clear") + (f" ({', '.join(said)})" if said else "")

    @property
    def title(self) -> str:
        """The query's name and, if known, the line that starts it."""
        return f"{self.name} at {self.started_at}" if self.started_at else self.name

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.summary}"]
        if self.shape.stages:
            lines.append(f"  task slots: {self.shape.arithmetic}")
        for finding in self.findings:
            lines.append(f"{SIGNS[finding.severity]} {finding.code}  {finding.heading}")
            lines.append(f"    {finding.detail}")
            if finding.fix:
                lines.append(f"    Fix: {finding.fix}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        slots = notebook.paragraph(f"task slots: {self.shape.arithmetic}" if self.shape.stages else "")
        return notebook.card(f"{self.title}: {self.summary}", slots, notebook.findings(self.findings))

    def to_dict(self) -> dict[str, Any]:
        """The findings and the stages, as plain values."""
        return {
            "name": self.name,
            "started_at": self.started_at,
            "blocked": self.blocked,
            "slots": self.shape.slots,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), indent=indent)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most severe first; equal findings once."""
    return tuple(most_severe_first(dict.fromkeys(findings)))
