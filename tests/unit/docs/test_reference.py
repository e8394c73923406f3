"""The generated pages match the code."""

from __future__ import annotations

import pytest

from tailrace._spark.support import support_registry
from tools.generate_docs import PAGES, REFERENCE


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name](), "run `make docs`"


def test_the_registry_is_not_empty() -> None:
    assert len([row for row in support_registry() if row.group]) > 30


def test_every_public_name_and_command_is_there() -> None:
    api = (REFERENCE / "api.md").read_text(encoding="utf-8")
    for name in ("tailrace.configure", "tailrace.results.Latency", "tailrace.errors.TailraceError"):
        assert f"\n### {name}\n" in api
    for name in ("tailrace.testing.StreamTest", "tailrace.loadtest.LoadTest", "tailrace.dashboard.serve"):
        assert f"\n### {name}\n" in api
    cli = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for command in ("check", "run", "kafka start"):
        assert f"\n## tailrace {command}\n" in cli
    assert "| `--json` |" in cli
    assert "| `--output, -o PATH` |" in cli


def test_every_public_name_is_described() -> None:
    """A member without a docstring would end in a colon and nothing."""
    lines = (REFERENCE / "api.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.endswith(": ")] == []
