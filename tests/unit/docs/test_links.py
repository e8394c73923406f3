"""Every link between our pages leads to a file and a heading that exist. `make site` checks the same for its pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers.tree import ROOT

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """As GitHub and Python-Markdown make it; where they would differ, `test_headings…` fails."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain.strip().lower()))


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)


def broken(page: Path) -> list[str]:
    wrong = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            wrong.append(f"{link}: no such file")
        elif anchor and anchor not in map(slug, headings(target)):
            wrong.append(f"{link}: no such heading")
        elif ROOT / "docs" in page.parents and not target.is_relative_to(ROOT / "docs"):
            wrong.append(f"{link}: not part of the site")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_there_are_links_to_check() -> None:
    assert len([link for page in PAGES for link in LINK.findall(prose(page))]) > 100


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# What it `costs`\n")
    page = tmp_path / "page.md"
    page.write_text("[a](gone.md) [b](other.md#what-it-costs) [c](other.md#gone)\n")
    assert broken(page) == ["gone.md: no such file", "other.md#gone: no such heading"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_headings_have_one_slug_each(page: Path) -> None:
    """GitHub keeps two hyphens in a row and numbers repeated headings in its own way; the site does not."""
    slugs = [slug(heading) for heading in headings(page) if page.name != "CHANGELOG.md"]
    assert [one for one in slugs if "--" in one or slugs.count(one) > 1] == []


def test_every_page_is_in_the_site() -> None:
    named = set(re.findall(r"([a-z-]+(?:/[a-z-]+)?\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {str(page.relative_to(ROOT / "docs")) for page in PAGES if ROOT / "docs" in page.parents} == named
