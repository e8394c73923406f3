"""A query's stages as a picture: in characters, as SVG, as a page and as data."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright
from rich.cells import cell_len
from rich.console import Console

from tailrace import TailraceError
from tailrace.check.boundary_estimate import STATEFUL_GAP_MS, STATELESS_GAP_MS
from tailrace.check.description import QueryShape
from tailrace.contract.codec import decode
from tailrace.contract.query_description import Operator, Stage
from tailrace.explain import Explanation, palette
from tests.helpers.browser import ARGUMENTS, browser_path

DESK: ViewportSize = {"width": 1360, "height": 900}
TABLET: ViewportSize = {"width": 800, "height": 600}
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALL_PHONE: ViewportSize = {"width": 360, "height": 640}
SCRIPT = "<script>document.title = 'broken in'</script>"

Open = Callable[..., Page]
Box = dict[str, float]


def stage(number: int, *operators: Operator, inputs: tuple[int, ...] = (), tasks: int | None = 4, **more: Any) -> Stage:
    sources = more.get("sources", () if inputs else (f"kafka: topic-{number}",))
    return Stage(number, inputs, sources, operators, tasks)


SCORE = Operator("udf: score", ours=True, line="app.py:14")
COUNT = Operator("groupBy().agg(), window(…)", stateful=True, line="app.py:17")
WHERE = Operator("filter, where")

ONE = QueryShape((stage(0, WHERE, SCORE, tasks=8),), "kafka", 60_000)
TWO = QueryShape((stage(0, SCORE, tasks=8), stage(1, COUNT, inputs=(0,), tasks=20)), "kafka", 300_000)
THREE = QueryShape(
    (
        stage(0, Operator("select, withColumn", line="app.py:12"), SCORE, tasks=8),
        stage(1, COUNT, inputs=(0,), tasks=20),
        stage(
            2,
            Operator("repartition(n, columns)", line="app.py:21"),
            Operator("foreach (Python)", ours=True, line="app.py:23"),
            inputs=(1,),
            tasks=20,
        ),
    ),
    "foreach",
    300_000,
)
UNION = QueryShape(
    (
        stage(0, SCORE, WHERE),
        stage(1, WHERE),
        stage(2, Operator("union"), COUNT, inputs=(0, 1)),
        stage(3, Operator("mapInPandas", ours=True), inputs=(2,)),
    ),
    "kafka",
    300_000,
)
UNEVEN = QueryShape(
    (stage(0), stage(1), stage(2, Operator("union"), inputs=(0, 1)), stage(3, WHERE), stage(4, COUNT, inputs=(2, 3))),
    "kafka",
)
DIAMOND = QueryShape(
    (stage(0), stage(1, WHERE, inputs=(0,)), stage(2, SCORE, inputs=(0,)), stage(3, COUNT, inputs=(1, 2))), "kafka"
)
SHORTCUT = QueryShape((stage(0), stage(1, WHERE, inputs=(0,)), stage(2, COUNT, inputs=(0, 1))), "kafka")
UNKNOWN = QueryShape((stage(0, SCORE, tasks=None), stage(1, COUNT, inputs=(0,), tasks=20)), "kafka")
WORDY = QueryShape(
    (
        stage(
            0,
            Operator("a_name_without_any_blank_" * 5, ours=True, stateful=True, line=f"{'folder/' * 20}app.py:12"),
            *(Operator(f"operator {number} with a name of several words", line="app.py:3") for number in range(30)),
            Operator("演算子の名前がとても長い場合", stateful=True, line="アプリ.py:3"),
            sources=(f"kafka: {', '.join(f'topic-{number}' for number in range(40))}",),
            tasks=3000,
        ),
        stage(1, COUNT, inputs=(0,)),
    ),
    "kafka",
)
HOSTILE = QueryShape(
    (
        stage(
            0,
            Operator(f"udf: {SCRIPT}", ours=True, line="</text></svg><i>.py:1"),
            Operator('a "quoted" & \x1b[31mred\x00 \u202ename\ud800'),
            sources=(f"kafka: {SCRIPT}",),
        ),
        stage(1, inputs=(0,)),
    ),
    f"kafka\n{SCRIPT}",
)
SHAPES = {
    "one": ONE,
    "two": TWO,
    "three": THREE,
    "union": UNION,
    "uneven": UNEVEN,
    "diamond": DIAMOND,
    "shortcut": SHORTCUT,
    "unknown": UNKNOWN,
    "wordy": WORDY,
    "hostile": HOSTILE,
    "empty": QueryShape(()),
}
EACH = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())


class _Words(HTMLParser):
    """The text of a page, and the names of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.names: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, _attributes: Any) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def text_of_svg(svg: str) -> str:
    return " ".join(words.strip() for words in ET.fromstring(svg).itertext())


def text_of_html(page: str) -> str:
    return " ".join(words.strip() for words in _Words(page).words)


def in_every_form(explanation: Explanation) -> dict[str, str]:
    return {
        "text": str(explanation),
        "svg": text_of_svg(explanation.svg()),
        "html": text_of_html(explanation.html()),
        "notebook": text_of_html(explanation._repr_html_()),
        "json": json.dumps(explanation.to_dict(), ensure_ascii=False),
    }


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
            f"  Nothing flows meanwhile ({STATELESS_GAP_MS} to {STATEFUL_GAP_MS} ms estimated)."
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
    def test_colours_on_a_terminal_and_the_same_text(self) -> None:
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


class TestEveryForm:
    @pytest.mark.parametrize("shape", [ONE, TWO, THREE, UNION, UNEVEN, DIAMOND, UNKNOWN])
    def test_says_all_that_is_known(self, shape: QueryShape) -> None:
        for form, text in in_every_form(Explanation(shape)).items():
            for one in shape.stages:
                for words in (*one.sources, *(operator.name for operator in one.operators)):
                    assert words in text, form
                for operator in one.operators:
                    assert (operator.line or "") in text, form
            assert shape.arithmetic in text, form
            for words in ("Offsets are committed.", "The next epoch is planned and launched."):
                assert words in " ".join(text.split()), form

    @EACH
    def test_pictures_say_where_rows_come_from_and_go_to(self, shape: QueryShape) -> None:
        explanation = Explanation(shape)
        for text in (text_of_svg(explanation.svg()), text_of_html(explanation.html())):
            words = " ".join(text.split())
            for one in shape.stages:
                assert f"stage {one.number} · {'?' if one.tasks is None else f'{one.tasks:,}'} slot" in words
            assert ("writes to kafka" in words) == (shape.sink is not None and shape.sink.startswith("kafka"))
            assert ("streaming shuffle (in memory)" in words) == (len(shape.stages) > 1)


class TestMarkup:
    @EACH
    def test_svg_is_well_formed_and_needs_nothing_else(self, shape: QueryShape) -> None:
        svg = Explanation(shape).svg()
        root = ET.fromstring(svg.encode())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        assert float(root.get("width", "0")) <= 1120
        names = {element.tag.partition("}")[2] for element in root.iter()}
        assert names <= {"svg", "style", "g", "rect", "text", "tspan", "path", "circle"}
        assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]

    @EACH
    def test_html_needs_nothing_else(self, shape: QueryShape) -> None:
        page = Explanation(shape).html()
        assert "http:" not in page
        assert "https:" not in page
        assert "url(" not in page
        assert not {"script", "link", "img", "iframe", "i"} & set(_Words(page).names)

    def test_names_from_the_query_are_only_text(self) -> None:
        for form in (Explanation(HOSTILE).svg(), Explanation(HOSTILE).html(), Explanation(HOSTILE)._repr_html_()):
            assert "<script" not in form
            assert "<i>" not in form
            assert "&lt;script&gt;" in form
            assert not {"\x1b", "\x00", "\u202e", "\ud800"} & set(form)

    def test_control_characters_do_not_reach_the_terminal(self) -> None:
        text = str(Explanation(HOSTILE))
        assert "udf: <script>" in text
        assert 'a "quoted" & �[31mred� �name�' in text
        assert all(char.isprintable() for char in text.replace("\n", ""))

    def test_the_colours_are_those_of_the_dashboard(self) -> None:
        assert palette.light()["accent"] == "#0d6e8c"
        assert palette.dark()["accent"] == "#57b6d3"
        assert palette.light().keys() == palette.dark().keys()
        for form in (Explanation(THREE).svg(), Explanation(THREE).html()):
            assert "#0d6e8c" in form
            assert "#57b6d3" in form.partition("prefers-color-scheme")[2]


class TestData:
    @pytest.mark.parametrize("shape", [ONE, THREE, UNION, UNKNOWN, HOSTILE])
    def test_json_can_be_read_back(self, shape: QueryShape) -> None:
        explanation = Explanation(shape)
        read = json.loads(explanation.to_json())
        assert read == explanation.to_dict()
        stages = [{key: value for key, value in one.items() if key != "stateful"} for one in read["stages"]]
        assert QueryShape(decode(tuple[Stage, ...], stages), read["sink"], read["epoch_ms"]) == shape

    def test_figures(self) -> None:
        figures = Explanation(THREE).to_dict()
        assert figures["slots"] == 48
        assert figures["arithmetic"] == "8 + 20 + 20 = 48"
        assert figures["stateful"]
        assert [one["stateful"] for one in figures["stages"]] == [False, True, False]
        assert len(figures["epoch_end"]) == 5

    def test_repr(self) -> None:
        assert repr(Explanation(THREE)) == "<Explanation of 3 stages: 48 task slots>"

    @pytest.mark.parametrize(
        ("milliseconds", "words"),
        [
            (300_000, " (every 5 minutes)"),
            (60_000, " (every minute)"),
            (90_000, " (every 1 minute 30 seconds)"),
            (3_600_000, " (every hour)"),
            (1500, " (every 1.5 seconds)"),
            (None, ""),
        ],
    )
    def test_the_epoch_in_words(self, milliseconds: int | None, words: str) -> None:
        text = str(Explanation(QueryShape((stage(0),), "kafka", milliseconds)))
        assert f"\nAt the end of each epoch{words}:\n" in text


class TestSave:
    def test_the_suffix_says_how(self, tmp_path: Path) -> None:
        explanation = Explanation(HOSTILE)
        for name in ("plan.svg", "plan.html", "plan.txt", "plan.json", "PLAN.SVG"):
            explanation.save(tmp_path / name)
        explanation.save(str(tmp_path / "named.txt"))
        assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == explanation.svg()
        assert (tmp_path / "PLAN.SVG").read_text(encoding="utf-8") == explanation.svg()
        assert (tmp_path / "plan.html").read_text(encoding="utf-8") == explanation.html()
        assert (tmp_path / "plan.txt").read_text(encoding="utf-8") == f"{explanation}\n"
        assert (tmp_path / "named.txt").read_text(encoding="utf-8") == f"{explanation}\n"
        assert json.loads((tmp_path / "plan.json").read_text(encoding="utf-8")) == explanation.to_dict()

    @pytest.mark.parametrize("name", ["plan.png", "plan"])
    def test_another_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(TailraceError) as raised:
            Explanation(ONE).save(tmp_path / name)
        assert raised.value.code == "TAILRACE_UNKNOWN_FORMAT"
        assert ".svg, .html, .txt, .json" in raised.value.fix
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_cannot_be_written(self, unwritable_folder: Path) -> None:
        with pytest.raises(TailraceError) as raised:
            Explanation(ONE).save(unwritable_folder / "plan.svg")
        assert raised.value.code == "TAILRACE_FOLDER_NOT_WRITABLE"


# In a real browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens a shape's page; the browser must have nothing to complain about and nothing to fetch."""
    complaints: list[str] = []
    contexts = []

    def open_page(shape: QueryShape, suffix: str = "html", **context: Any) -> Page:
        file = tmp_path / f"plan.{suffix}"
        Explanation(shape).save(file)
        contexts.append(browser.new_context(**{"viewport": DESK, **context}))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: complaints.append(sent.url) if sent.url != file.as_uri() else None)
        page.goto(file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def boxes(stages: Locator) -> list[Box]:
    places = [one.locator(".box").bounding_box() for one in stages.all()]
    return [{key: float(value) for key, value in place.items()} for place in places if place]  # type: ignore[arg-type]


def overlap(one: Box, other: Box) -> bool:
    return all(
        one[start] < other[start] + other[length] and other[start] < one[start] + one[length]
        for start, length in (("x", "width"), ("y", "height"))
    )


def sticking_out(stages: Locator) -> list[str]:
    """Texts that are wider than the box around them."""
    found: list[str] = stages.evaluate_all(
        """stages => stages.flatMap(stage => {
            const box = stage.querySelector(".box").getBoundingClientRect();
            return [...stage.querySelectorAll("text")].filter(text => {
                const place = text.getBoundingClientRect();
                return place.left < box.left || place.right > box.right
                    || place.top < box.top || place.bottom > box.bottom;
            }).map(text => text.textContent);
        })"""
    )
    return found


DRAWN = {name: shape for name, shape in SHAPES.items() if shape.stages}


@pytest.mark.parametrize("shape", DRAWN.values(), ids=DRAWN.keys())
def test_every_stage_is_seen_without_scrolling_sideways(open_page: Open, shape: QueryShape) -> None:
    page = open_page(shape)
    assert page.title() == "Stages of the query · Tailrace"
    for screen in (PHONE, SMALL_PHONE, TABLET, DESK):
        page.set_viewport_size(screen)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
        shown = page.locator(".stage:visible")
        assert shown.count() == len(shape.stages)
        places = boxes(shown)
        assert all(place["x"] >= 0 and place["x"] + place["width"] <= screen["width"] for place in places)
        assert all(place["width"] > 190 for place in places)
        assert not any(overlap(one, other) for one, other in combinations(places, 2))
        assert sticking_out(shown) == []


def test_text_is_as_large_on_a_phone_as_on_a_desk(open_page: Open) -> None:
    heights = []
    for screen in (DESK, PHONE):
        title = open_page(UNION, viewport=screen).locator(".stage:visible .title").first.bounding_box()
        assert title is not None
        heights.append(title["height"])
    assert heights[1] >= heights[0]


def test_light_and_dark(open_page: Open) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        page = open_page(THREE, color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        box = page.locator(".desk .box").first.evaluate("box => getComputedStyle(box).fill")
        grounds.append(box)
    assert grounds == ["rgb(244, 246, 248)", "rgb(248, 250, 251)", "rgb(13, 18, 23)", "rgb(25, 34, 42)"]


@pytest.mark.parametrize("shape", DRAWN.values(), ids=DRAWN.keys())
def test_a_browser_draws_the_svg(open_page: Open, shape: QueryShape) -> None:
    page = open_page(shape, suffix="svg")
    assert page.locator(".stage").count() == len(shape.stages)
    assert sticking_out(page.locator(".stage")) == []
