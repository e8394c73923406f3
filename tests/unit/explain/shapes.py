"""Queries of many shapes, and what a picture of them says."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tailrace.check.description import QueryShape
from tailrace.contract.query_description import Operator, Stage
from tailrace.explain import Explanation

SCRIPT = "<script>document.title = 'broken in'</script>"


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
