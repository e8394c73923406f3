"""The folders of both languages import each other in one direction only, and their files stay small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCALA = ROOT / "jvm" / "src"
PLUGIN = SCALA / "org" / "apache" / "spark" / "sql" / "tailrace"
PACKAGE = "org.apache.spark.sql.tailrace"
MAX_SCALA_LINES = 350
MAX_SCALA_COLUMNS = 120

BASE = ("conf", "internals/names", "internals/kafka", "internals", "plan", "origin", "metrics", "errors")
OPERATORS = tuple(f"operators/{name}" for name in ("input", "state", "origin", "python", "join", "session"))
SHARED_OPERATORS = OPERATORS[:2]
SINKS = (
    "sink",
    "sink/dedup",
    "sink/identity",
    "sink/replay",
    "sink/store",
    "sink/kafka",
    "sink/postgresql",
    "sink/redis",
)
EPOCH = ("epoch/context", "epoch/drain", "epoch/overlap", "epoch/rules", "epoch")

# What each folder may import, from the bottom of the tree to its top.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    **{folder: BASE[:position] for position, folder in enumerate(BASE)},
    "operators/input": BASE,
    "operators/state": (*BASE, "operators/input"),
    **dict.fromkeys(OPERATORS[2:], (*BASE, *SHARED_OPERATORS)),
    "sink": BASE,
    # The deduplicators know rows and their origins, and nothing of Spark or Kafka's client.
    "sink/dedup": ("origin",),
    # What any exactly-once sink needs, whatever it writes to.
    "sink/identity": (*BASE, *SINKS[:2]),
    "sink/replay": ("origin", "sink/dedup"),
    # What any store needs that writes rows and a journal of them in one atomic step.
    "sink/store": (*BASE, *SINKS[:4]),
    "sink/kafka": (*BASE, *SINKS[:4]),
    "sink/postgresql": (*BASE, *SINKS[:5]),
    "sink/redis": (*BASE, *SINKS[:5]),
    **{folder: (*BASE, *OPERATORS, *SINKS, *EPOCH[:position]) for position, folder in enumerate(EPOCH)},
    "preflight": (*BASE, *OPERATORS, *SINKS, *EPOCH),
    # Nobody imports these two.
    "checkpoint": BASE,
    "testing": BASE,
}
# Spark and users name these; they put the rest together, and nothing below knows them.
ENTRY_POINTS = {"TailraceExtensions", "TailracePlugin", "Handshake"}


def scala_files() -> Iterator[Path]:
    return SCALA.rglob("*.scala")


def folder_of(file: Path) -> str:
    return file.parent.relative_to(PLUGIN).as_posix()


def imported_folders(file: Path) -> set[str]:
    text = file.read_text(encoding="utf-8")
    names = re.findall(rf"(?<!package ){re.escape(PACKAGE)}((?:\.[a-z]\w*)+)", text)
    return {name[1:].replace(".", "/") for name in names}


def test_scala_packages_are_their_folders() -> None:
    """Only then do imports tell what a file uses: names of enclosing packages are not visible in it."""
    for file in scala_files():
        package = file.parent.relative_to(SCALA).as_posix().replace("/", ".")
        clauses = re.findall(r"^package (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert clauses == [package], file


def test_scala_folders_import_along_the_arrows() -> None:
    against = []
    for file in PLUGIN.rglob("*.scala"):
        folder = folder_of(file)
        allowed = {folder, *MAY_IMPORT[folder]}
        against += [f"{folder}/{file.name} imports {other}" for other in imported_folders(file) - allowed]
    assert sorted(against) == []


def test_nothing_in_the_plugin_knows_its_entry_points() -> None:
    knowing = []
    for file in scala_files():
        if file.parent == SCALA / "tailrace" and file.stem in ENTRY_POINTS:
            continue
        text = file.read_text(encoding="utf-8")
        knowing += [f"{file.name} imports {name}" for name in ENTRY_POINTS if f"import tailrace.{name}" in text]
        if PLUGIN not in file.parents:
            # The registry of supported operators names classes in texts; imports would be a cycle.
            assert f"import {PACKAGE}" not in text, file
    assert sorted(knowing) == []


def test_only_internals_reach_by_name() -> None:
    """So that an upgrade of Spark or Kafka starts in that folder."""
    reflection = re.compile(
        r"reflectiveCalls|\bgetDeclared\w+|setAccessible|\bget(Method|Methods|Field|Fields|Constructors?)\b(?=[.(])"
        r"|\bClass\.forName|java\.lang\.reflect|org\.apache\.spark\.sql\.kafka010|type \w+ = \{ *def "
    )
    names = {*scala_files()} - {*(PLUGIN / "internals").rglob("*.scala"), *(SCALA / "tailrace/support").glob("*.scala")}
    found = [
        f"{file.name}: {match[0]}" for file in names for match in reflection.finditer(file.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == []


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_every_scala_folder_is_on_the_map(folder: str) -> None:
    assert list((PLUGIN / folder).glob("*.scala")), f"{folder} is empty: take it off the map"


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_every_scala_folder_is_described(folder: str) -> None:
    page = (ROOT / "docs/internals/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+) \|", page.partition("## The plugin's folders")[2], re.MULTILINE)
    assert f"`{folder}`" in ", ".join(rows)


def test_scala_files_are_small() -> None:
    lines = {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in scala_files()}
    assert {name: count for name, count in lines.items() if count > MAX_SCALA_LINES} == {}


def test_scala_lines_are_short() -> None:
    """scalafmt does not break comments and texts. An import of one long name cannot be broken."""
    long = []
    for file in (ROOT / "jvm").rglob("*.scala"):
        lines = enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        long += [
            f"{file.name}:{number}"
            for number, line in lines
            if len(line) > MAX_SCALA_COLUMNS and not line.startswith("import ")
        ]
    assert long == []


# Effects of any kind: Kafka, locks and waiting, registries, and what depends on the thread that plans.
EFFECTS = (
    "org.apache.kafka",
    "SparkEnv",
    "SparkContext",
    "sparkContext",
    "LocalProperty",
    "register(",
    "LiveFigures",
    "Drains",
    "Await",
    "synchronized",
    "wait(",
    "activeStreamingQueries",
    "mutable",
    "Rehears",
)


@pytest.mark.parametrize("file", sorted((PLUGIN / "epoch" / "rules").glob("*.scala")), ids=lambda file: file.stem)
def test_rules_of_an_epoch_have_no_effects(file: Path) -> None:
    """What has effects is prepared before, in `PrepareEpoch`, and the rules only see its result."""
    text = file.read_text(encoding="utf-8")
    assert [word for word in EFFECTS if word in text] == []
    assert not re.search(r"\bvar ", text), "a rule keeps nothing"


def test_every_rule_of_an_epoch_is_listed() -> None:
    """Each in one line that says what it does."""
    listed = re.findall(r"^    (\w+),? // \S.+\.$", (PLUGIN / "epoch" / "EpochRules.scala").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(file.stem for file in (PLUGIN / "epoch" / "rules").glob("*.scala"))
