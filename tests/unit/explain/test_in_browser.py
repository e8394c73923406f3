"""The page with a query's picture, in a real browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

from tailrace.check.description import QueryShape
from tailrace.explain import Explanation
from tests.helpers.browser import ARGUMENTS, browser_path
from tests.unit.explain.shapes import SHAPES, THREE, UNION

DESK: ViewportSize = {"width": 1360, "height": 900}


TABLET: ViewportSize = {"width": 800, "height": 600}


PHONE: ViewportSize = {"width": 390, "height": 844}


SMALL_PHONE: ViewportSize = {"width": 360, "height": 640}


Open = Callable[..., Page]


Box = dict[str, float]


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


@pytest.mark.parametrize(
    "shape",
    [
        # The page has the same drawing, and is shown with every shape.
        pytest.param(shape, id=name, marks=() if name in ("diamond", "hostile") else pytest.mark.chaos)
        for name, shape in DRAWN.items()
    ],
)
def test_a_browser_draws_the_svg(open_page: Open, shape: QueryShape) -> None:
    page = open_page(shape, suffix="svg")
    assert page.locator(".stage").count() == len(shape.stages)
    assert sticking_out(page.locator(".stage")) == []
