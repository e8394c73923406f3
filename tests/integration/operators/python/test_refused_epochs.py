"""`foreach` whose `open()` returns False: as in micro-batch, its rows are dropped and their offsets are committed."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.pipeline import Pipeline
from tests.helpers.refused_epochs import check_refused_epochs


def test_refused_rows_are_dropped_and_committed(pipeline: Pipeline, tmp_path: Path) -> None:
    check_refused_epochs(pipeline, tmp_path)
