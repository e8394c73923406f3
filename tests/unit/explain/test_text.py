"""A query's stages as a picture in characters."""

from __future__ import annotations

import io
import random
import re
from xml.etree import ElementTree as ET

import pytest
from rich.cells import cell_len
from rich.console import Console

from tailrace.check.boundary_estimate import STATEFUL_PAUSE_MS, STATELESS_PAUSE_MS
from tailrace.check.description import QueryShape
from tailrace.contract.query_description import Operator, Stage
from tailrace.explain import Explanation
from tests.unit.explain.shapes import (
    COUNT,
    DIAMOND,
    EACH,
    ONE,
    SCORE,
    SHORTCUT,
    THREE,
    TWO,
    UNEVEN,
    UNION,
    UNKNOWN,
    WHERE,
    WORDY,
    in_every_form,
    stage,
)


class TestText:
    def test_one_stage(self) -> None:
        assert str(Explanation(ONE)) == (
            "╭─ stage 0 · 8 slots ────────────────╮\n"
            "│   reads kafka: topic-0             │\n"
            "│   filter, where                    │\n"
            "│ ◆ udf: score             app.py:14 │\n"
            "│   writes to kafka                  │\n"
            "╰────────────────────────────────────╯\n"
            "\n"
            "◆ Tailrace's own operator\n"
            "\n"
            "Its one stage holds 8 task slots for as long as the query runs.\n"
            "\n"
            "At the end of each epoch (every minute):\n"
            "  1. Sources stop reading.\n"
            "  2. Stages finish what is under way.\n"
            "  3. Offsets are committed.\n"
            "  4. The next epoch is planned and launched.\n"
            f"  Nothing flows meanwhile ({STATELESS_PAUSE_MS} to {STATEFUL_PAUSE_MS} ms estimated)."
        )

    def test_two_stages(self) -> None:
        assert (
            Explanation(TWO)
            .text()
            .startswith(
                "╭─ stage 0 · 8 slots ─────────────────────╮\n"
                "│   reads kafka: topic-0                  │\n"
                "│ ◆ udf: score                  app.py:14 │\n"
                "╰────────────────────┬────────────────────╯\n"
                "                     │ streaming shuffle (in memory)\n"
                "                     ▼\n"
                "╭─ stage 1 · 20 slots ────────────────────╮\n"
                "│ ● groupBy().agg(), window(…)  app.py:17 │\n"
                "│   writes to kafka                       │\n"
                "╰─────────────────────────────────────────╯\n"
                "\n"
                "◆ Tailrace's own operator   ● keeps state\n"
            )
        )

    def test_three_stages_add_up(self) -> None:
        text = " ".join(str(Explanation(THREE)).split())
        assert text.count("streaming shuffle (in memory)") == 2
        assert text.count("writes to") == 1
        assert "All 3 stages run at the same time: 8 + 20 + 20 = 48 task slots, for as long as the query runs." in text
        assert "At the end of each epoch (every 5 minutes):" in text
        assert "3. State is committed: its changelog goes to the checkpoint. 4. Offsets are committed." in text

    def test_two_stages_that_feed_one_stand_side_by_side(self) -> None:
        assert (
            Explanation(UNION)
            .text(80)
            .startswith(
                "╭─ stage 0 · 4 slots ────────────────╮  ╭─ stage 1 · 4 slots ────────────────╮\n"
                "│   reads kafka: topic-0             │  │   reads kafka: topic-1             │\n"
                "│ ◆ udf: score             app.py:14 │  │   filter, where                    │\n"
                "│   filter, where                    │  ╰──────────────────┬─────────────────╯\n"
                "╰──────────────────┬─────────────────╯                     │\n"
                "                   ╰───────────────────┬───────────────────╯\n"
                "                                       │ streaming shuffle (in memory)\n"
                "                                       ▼\n"
                "                  ╭─ stage 2 · 4 slots ─────────────────────╮\n"
                "                  │   union                                 │\n"
                "                  │ ● groupBy().agg(), window(…)  app.py:17 │\n"
                "                  ╰────────────────────┬────────────────────╯\n"
                "                                       │ streaming shuffle (in memory)\n"
                "                                       ▼\n"
                "                    ╭─ stage 3 · 4 slots ────────────────╮\n"
            )
        )

    def test_or_one_below_the_other_with_references_where_they_do_not_fit(self) -> None:
        lines = [line.strip("│ ") for line in Explanation(UNION).text(60).splitlines()]
        assert lines.count("→ stage 2") == 2
        assert "← stages 0, 1: streaming shuffle (in memory)" in lines
        assert "▼" in lines, "stage 3 gets its rows from the one above"

    @pytest.mark.parametrize(
        ("shape", "references"),
        [
            (DIAMOND, ["→ stage 2", "→ stage 3", "← stage 0", "→ stage 3", "← stages 1, 2"]),
            (SHORTCUT, ["→ stage 2", "→ stage 2", "← stages 0, 1"]),
        ],
        ids=["diamond", "shortcut"],
    )
    def test_lines_that_would_cross_are_references(self, shape: QueryShape, references: list[str]) -> None:
        assert re.findall(r"[→←] stages? [\d, ]*\d", Explanation(shape).text(200)) == references

    def test_a_stage_stands_right_above_the_one_that_it_feeds(self) -> None:
        lines = Explanation(UNEVEN).text(130).splitlines()
        level = {number: next(i for i, line in enumerate(lines) if f"stage {number} ·" in line) for number in range(5)}
        assert level[0] == level[1] < level[2] == level[3] < level[4]

    def test_unknown_slots(self) -> None:
        text = " ".join(str(Explanation(UNKNOWN)).split())
        assert "stage 0 · ? slots" in text
        assert "? + 20 = ? task slots" in text
        assert "the number of the source's partitions, which is unknown" in text

    def test_a_query_without_state_has_no_state_to_commit(self) -> None:
        for form in in_every_form(Explanation(ONE)).values():
            assert "State is committed" not in form
            assert "keeps state" not in form

    @EACH
    @pytest.mark.parametrize("width", [1, 40, 60, 80, 120, 200])
    def test_no_line_is_too_long(self, shape: QueryShape, width: int) -> None:
        lines = Explanation(shape).text(width).splitlines()
        assert max(map(cell_len, lines)) <= max(width, 40)
        assert [line for line in lines if line != line.rstrip()] == []

    def test_nothing_is_lost_where_lines_are_wrapped(self) -> None:
        rows = [line.strip("│●◆ ") for line in Explanation(WORDY).text(60).splitlines()]
        for words in (WORDY.stages[0].sources[0], *(one.name for one in WORDY.stages[0].operators)):
            assert words.replace(" ", "") in "".join(rows).replace("app.py:3", "").replace(" ", "")
        assert any(row.startswith("…") and row.endswith("folder/app.py:12") for row in rows)

    @pytest.mark.parametrize("seed", range(20))
    def test_any_tree_fits_any_width(self, seed: int) -> None:
        dice = random.Random(seed)
        stages: list[Stage] = []
        loose: list[int] = []
        for number in range(dice.randint(1, 9)):
            inputs = tuple(sorted(dice.sample(loose, dice.randint(0, min(3, len(loose))))))
            loose = [other for other in loose if other not in inputs] + [number]
            stages.append(stage(number, WHERE, SCORE, inputs=inputs))
        shape = QueryShape((*stages, stage(len(stages), COUNT, inputs=tuple(loose))), "kafka")
        for width in (40, 80, 120, 400):
            text = Explanation(shape).text(width)
            assert max(map(cell_len, text.splitlines())) <= width
            assert sorted(re.findall(r"stage (\d+) ·", text), key=int) == [str(one.number) for one in shape.stages]
        ET.fromstring(Explanation(shape).svg())


class TestRich:
    def test_colors_on_a_terminal_and_the_same_text(self) -> None:
        output = io.StringIO()
        Console(file=output, force_terminal=True, width=80, highlight=False).print(Explanation(THREE).rich())
        assert "\x1b[36m◆" in output.getvalue()
        assert re.sub(r"\x1b\[[\d;]*m", "", output.getvalue()) == Explanation(THREE).text(80) + "\n"

    def test_none_in_a_file(self) -> None:
        output = io.StringIO()
        Console(file=output, width=100).print(Explanation(UNION).rich())
        assert output.getvalue() == Explanation(UNION).text(100) + "\n"

    def test_what_looks_like_markup_is_text(self) -> None:
        output = io.StringIO()
        shape = QueryShape((stage(0, Operator("[red]udf[/red]")),))
        Console(file=output, width=80).print(Explanation(shape).rich())
        assert "[red]udf[/red]" in output.getvalue()
