"""A query's stages in every form: what each says, as SVG, as a page, as data and as a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tailrace import TailraceError
from tailrace.check.description import QueryShape
from tailrace.contract.codec import decode
from tailrace.contract.query_description import Stage
from tailrace.explain import Explanation, palette
from tests.unit.explain.shapes import (
    DIAMOND,
    EACH,
    HOSTILE,
    ONE,
    THREE,
    TWO,
    UNEVEN,
    UNION,
    UNKNOWN,
    _Words,
    in_every_form,
    stage,
    text_of_html,
    text_of_svg,
)


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

    def test_the_colors_are_those_of_the_dashboard(self) -> None:
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
