"""Errors that a user can fix: a code, what is wrong, and the change that fixes it."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

# What Spark appends to a message: its SQL state, the query's plan, a stack.
_END = r"(?= SQLSTATE: |\n=== Streaming Query|\n\s*at |\n\n?JVM stacktrace|\Z)"
_CODED = re.compile(rf"\[(TAILRACE_[A-Z_]+)\] (.*?)\nFix: (.*?){_END}", re.DOTALL)


class TailraceError(PySparkException):
    """A problem in the user's terms, with the change that fixes it.

    `code` is stable and documented in docs/reference/errors.md. The wording of `problem` and `fix` may improve between
    releases.
    """

    def __init__(self, code: str, problem: str, fix: str) -> None:
        super().__init__(message=f"[{code}] {problem}\nFix: {fix}")
        self.code = code
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        return f"[{self.code}] {self.problem}\nFix: {self.fix}"

    def getCondition(self) -> str:
        """Return the error's code, as PySpark's exceptions do."""
        return self.code

    @classmethod
    def find_in(cls, text: str) -> TailraceError | None:
        """Return the coded error inside a longer text, such as a JVM stack trace; None if there is none."""
        match = _CODED.search(text)
        return cls(match[1], match[2].strip(), match[3].strip()) if match else None
