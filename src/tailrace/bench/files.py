"""The files of a benchmark's result."""

from __future__ import annotations

from pathlib import Path

from tailrace.bench.result import FORMAT, BenchResult
from tailrace.contract.codec import from_json, parsed, to_json
from tailrace.errors import TailraceError

RESULT = "bench.json"


def write(result: BenchResult, folder: Path) -> Path:
    """Write the JSON file; a reader never sees half of it."""
    path = folder / RESULT
    partial = path.with_suffix(".partial")
    partial.write_text(to_json(result, indent=1) + "\n", encoding="utf-8")
    return partial.replace(path)


def read(path: Path) -> BenchResult:
    """Read a result, or raise an error that names the file."""
    path = path / RESULT if path.is_dir() else path
    try:
        text = path.read_text(encoding="utf-8")
        found = parsed(text)
        if isinstance(found, dict) and found.get("format") not in (None, FORMAT):
            raise ValueError(f"it has format {found['format']}, and this version reads {FORMAT}")
        return from_json(BenchResult, text)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or str(failure)
        raise TailraceError(
            "TAILRACE_BAD_BENCH_FILE",
            f"{path} is not a result of this version's tailrace bench: {reason}.",
            "name a bench.json that tailrace bench has written, or its folder.",
        ) from None
