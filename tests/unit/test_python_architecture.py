"""The Python tree: folders import each other in one direction only, files stay small, and the top is for users."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "tailrace"
MAX_LINES = 300
MAX_TEST_LINES = 400

# From the bottom of the tree to its top: each may import what is below it, and none of its neighbors.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "contract"),
    ("_process",),
    ("_spark",),
    ("_kafka",),
    ("_broker", "_postgres", "_redis", "_testing", "functions", "monitor", "loadtest"),
    ("kafka", "postgres", "redis", "supervise"),
    ("check", "dashboard"),
    ("explain", "size"),
    ("session", "results"),
    ("testing", "chaos", "demo", "bench", "new"),
    ("cli",),
)

PUBLIC = {"errors", "functions", "kafka", "postgres", "redis", "results", "session", "testing"}
ENTRY_POINTS = {"__init__", "__main__", "_version"}


def modules() -> dict[str, Path]:
    """Every module by its dotted name."""
    names = {}
    for file in PACKAGE.rglob("*.py"):
        parts = file.relative_to(SOURCES).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return names


def imports_of(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of ours that a file imports anywhere, for type checking too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in known else node.module


def unit_of(module: str) -> str:
    """The folder or the file on top of the package that a module belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def import_graph() -> dict[str, set[str]]:
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, file in known.items():
        targets = {unit_of(target) for target in imports_of(file, known)}
        graph.setdefault(unit_of(module), set()).update(targets - {unit_of(module)})
    return graph


def test_imports_go_in_one_direction() -> None:
    graph = import_graph()
    assert graph["session"] >= {"check", "dashboard", "monitor", "supervise"}, "the graph was not read"
    assert set(graph) == {unit for layer in LAYERS for unit in layer} | ENTRY_POINTS, "a folder is in no layer"
    below = {"_version"}
    for layer in LAYERS:
        for unit in layer:
            assert graph[unit] <= below, f"{unit} imports {sorted(graph[unit] - below)} against the arrows"
        below.update(layer)


def runtime_imports_of(file: Path, known: dict[str, Path]) -> set[str]:
    """Those at the top of a module; an import for type checking, or inside a function, makes no cycle."""
    top = ast.parse(file.read_text(encoding="utf-8"))
    top.body = [node for node in top.body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = set()
    for node in top.body:
        if isinstance(node, ast.ImportFrom) and node.module in known:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {one if one in known else node.module for one in submodules}
    return names


def test_no_module_imports_itself_through_others() -> None:
    """Inside a folder too: its rules may use what the rest of it is made of, and not what uses the rules."""
    known = modules()
    graph = {module: runtime_imports_of(file, known) - {module} for module, file in known.items()}
    # The package of a module imports it only to pass it on.
    left = {module: {one for one in targets if not module.startswith(f"{one}.")} for module, targets in graph.items()}
    while free := [module for module, targets in left.items() if not targets & left.keys()]:
        for module in free:
            del left[module]
    assert sorted(left) == []


def test_contributors_are_told_the_same_direction() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [arrows] = re.findall(r"^Python +(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert tuple(tuple(re.findall(r"\w+", layer)) for layer in arrows.split("←")) == LAYERS


def test_the_top_of_the_package_is_what_users_import() -> None:
    on_top = {file.stem for file in PACKAGE.glob("*.py")}
    assert on_top == PUBLIC | ENTRY_POINTS
    assert len(on_top) <= 16


def test_nothing_below_imports_the_whole_package() -> None:
    importing = [unit for unit, targets in import_graph().items() if "__init__" in targets]
    assert importing == []


def test_files_are_small() -> None:
    lines = {
        file.relative_to(PACKAGE).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for file in modules().values()
    }
    assert {name for name, count in lines.items() if count > MAX_LINES} == set()


def test_test_files_are_small() -> None:
    """Larger ones are split by topic."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "jvm" / "test").rglob("*.scala")]
    lines = {file.relative_to(ROOT).as_posix(): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name for name, count in lines.items() if count > MAX_TEST_LINES} == set()
