"""The documentation is true: its code runs, its tables equal the code's. Links and generated pages: tests/unit/docs."""

from __future__ import annotations

import json
import re

import pytest

from tailrace._spark import maven
from tailrace._spark.defaults import REAL_TIME_DEFAULTS
from tests.helpers.processes import run_python
from tests.helpers.tree import ROOT

TOP_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP_PAGES, *sorted((ROOT / "docs").rglob("*.md"))]
NOT_CODES = {
    "TAILRACE_TOKEN",
    "TAILRACE_CACHE",
    "TAILRACE_DAEMON_MODULE",
    "TAILRACE_FLINK_CONNECTOR",
    "TAILRACE_KAFKA_BROKER",
    "TAILRACE_KAFKA_CONNECTOR",
    "TAILRACE_POSTGRESQL_DRIVER",
    "TAILRACE_POSTGRESQL_SERVER",
    "TAILRACE_REDIS_CLIENT",
    "TAILRACE_REDIS_SERVER",
    "TAILRACE_RUN_FOLDER",
    "TAILRACE_STATE",
}


def python_blocks() -> list[tuple[str, str]]:
    blocks = []
    for page in PAGES:
        for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            blocks.append((f"{page.name}-{number}", code))
    return blocks


RUN_EACH = """
import json, sys, traceback
for name, code in json.loads(sys.stdin.read()).items():
    print(f"=== {name}", file=sys.stderr, flush=True)
    try:
        exec(compile(code, name, "exec"), {"__name__": "__main__"})
        print(f"ran {name}")
    except BaseException:
        traceback.print_exc()
"""


@pytest.fixture(scope="module")
def block_runs() -> dict[str, tuple[bool, str]]:
    """Whether each block ran, and what it said on standard error: one after the other, in one process to save time."""
    result = run_python(RUN_EACH, stdin=json.dumps(dict(python_blocks())), timeout_s=400)
    said = dict(part.split("\n", 1) for part in result.stderr.split("=== ")[1:])
    return {
        name: (f"ran {name}" in result.stdout.splitlines(), said.get(name, result.stderr))
        for name, _ in python_blocks()
    }


@pytest.mark.parametrize("name", [name for name, _ in python_blocks()])
def test_every_python_block_runs(name: str, block_runs: dict[str, tuple[bool, str]]) -> None:
    ran, said = block_runs[name]
    assert ran, said
    assert "[TAILRACE_" not in said, "what we show to others has nothing to be warned of"


def test_the_blocks_above_are_all_there_are() -> None:
    """A page that moved would leave nothing to run; every page that shows Python is among them."""
    shown = {name.rpartition("-")[0] for name, _ in python_blocks()}
    assert shown >= {"README.md", "check.md", "configuration.md", "load-test.md", "quickstart.md"}


def test_the_error_page_has_exactly_the_codes_of_the_sources() -> None:
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("jvm/worker/**/*.py"), *ROOT.glob("jvm/src/**/*.scala")]
    in_code = {code for source in sources for code in re.findall(r'"(TAILRACE_[A-Z_]+)"', source.read_text())}
    rules = [source.read_text() for source in ROOT.glob("src/tailrace/monitor/findings/*.py")]
    finding_codes = set(re.findall(r'"(TAILRACE_[A-Z_]+)"', "".join(rules)))
    assert codes_on("reference/errors.md")
    assert codes_on("reference/errors.md") == in_code - NOT_CODES - finding_codes
    assert codes_on("guide/live-latency.md") == finding_codes


def test_every_code_has_an_example_and_a_fix() -> None:
    rows = re.findall(r"^\| `TAILRACE_[A-Z_]+` \|.*$", (ROOT / "docs/reference/errors.md").read_text(), re.MULTILINE)
    assert len(rows) > 80
    for row in rows:
        # A pipe in a code span would be one more cell.
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) in (4, 5), row
        assert all(cells), row


def codes_on(page: str) -> set[str]:
    return set(re.findall(r"^\| `(TAILRACE_[A-Z_]+)`", (ROOT / "docs" / page).read_text(), re.MULTILINE))


def test_every_default_is_documented_with_its_reason() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text()
    for default in REAL_TIME_DEFAULTS:
        assert f"`{default.key}`" in page
        assert default.reason in page
        assert f"| `{default.value}` |" in page


def test_the_jars_are_the_documented_ones() -> None:
    page = (ROOT / "docs/reference/configuration.md").read_text()
    for jar_set in (
        maven.KAFKA_CONNECTOR,
        maven.KAFKA_BROKER,
        maven.POSTGRESQL_DRIVER,
        maven.POSTGRESQL_SERVER,
        maven.REDIS_CLIENT,
        maven.REDIS_SERVER,
    ):
        assert f"`{jar_set.variable}`" in page
        for coordinate in jar_set.coordinates:
            assert f"`{coordinate}`" in page
