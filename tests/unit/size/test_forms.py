"""A sizing as text, JSON and a plot."""

from __future__ import annotations

import builtins
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tailrace import TailraceError
from tailrace.size import (
    Load,
    parse_stages,
    size_of,
)
from tailrace.size.interval import INTERVALS_S
from tests.unit.size.figures import MEASURED, sized


class TestForms:
    def test_json_is_the_dictionary(self) -> None:
        for load in (Load(), MEASURED, Load(rows_per_s=2, throughput_rows_per_s=1)):
            sizing = size_of(parse_stages("8,20"), load)
            assert json.loads(sizing.to_json()) == sizing.to_dict()

    def test_durations_and_sizes_have_their_unit_in_their_name(self) -> None:
        figures = size_of(parse_stages("8,20"), MEASURED).to_dict()
        assert {"boundary_ms", "max_recovery_s", "recommended_interval_s"} <= set(figures)
        assert {"executor_memory_bytes", "executor_overhead_bytes", "state_bytes", "state_disk_bytes"} <= set(figures)
        assert {"interval_s", "recovery_s", "catch_up_s"} <= set(figures["intervals"][0])

    def test_the_text_fits_a_terminal_and_is_aligned(self) -> None:
        lines = str(size_of(parse_stages("8,20,20"), MEASURED)).splitlines()
        assert max(map(len, lines)) <= 100
        table = [line for line in lines if "█" in line]
        assert len(table) == len(INTERVALS_S)
        assert len({line.index("%") for line in table}) == 1
        assert [line for line in table if "◀" in line] == [line for line in table if line.strip().startswith("2 min")]

    def test_bars_of_recovery_rise_and_those_of_boundaries_fall(self) -> None:
        lines = [line for line in str(size_of(parse_stages("8,20"), MEASURED)).splitlines() if "█" in line]
        bars = [tuple(map(len, re.findall("█+", line))) for line in lines]
        assert [rising for rising, _ in bars] == sorted(rising for rising, _ in bars)
        assert [falling for _, falling in bars] == sorted((falling for _, falling in bars), reverse=True)
        assert bars[0] == (1, 10)
        assert bars[-1] == (10, 1)

    @pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
    def test_plot(self, tmp_path: Path, suffix: str, begins: bytes) -> None:
        for number, load in enumerate((MEASURED, Load(), Load(rows_per_s=2, throughput_rows_per_s=1))):
            path = size_of(parse_stages("8,20"), load).plot(tmp_path / f"{number}.{suffix}")
            assert path.read_bytes().startswith(begins)
            assert path.stat().st_size > 10_000

    def test_a_plot_that_cannot_be_drawn(self, tmp_path: Path, unwritable_folder: Path) -> None:
        for path, code in (
            (tmp_path / "plot.gif", "TAILRACE_BAD_SIZE"),
            (unwritable_folder / "plot.png", "TAILRACE_FOLDER_NOT_WRITABLE"),
        ):
            with pytest.raises(TailraceError) as error:
                sized().plot(path)
            assert error.value.code == code

    def test_a_plot_without_matplotlib(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        really_import = builtins.__import__

        def without_matplotlib(name: str, *rest: Any, **more: Any) -> Any:
            if name.startswith("matplotlib"):
                raise ImportError(name)
            return really_import(name, *rest, **more)

        monkeypatch.setattr(builtins, "__import__", without_matplotlib)
        with pytest.raises(TailraceError) as error:
            sized().plot(tmp_path / "plot.png")
        assert error.value.code == "TAILRACE_EXTRA_MISSING"
