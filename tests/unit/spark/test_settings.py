"""Every `spark.tailrace.…` key is declared once, in the plugin's registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace._spark.plugin import CLIENT_VERSION_KEY
from tailrace._spark.settings import Setting, settings_registry

ROOT = Path(__file__).resolve().parents[3]
KEY = re.compile(r"spark\.tailrace\.[a-z]\w*(?:\.[a-z]\w*)*")
FOR_TESTS = "spark.tailrace.testing"
MADE_UP = {"spark.tailrace.warmup.epoch", "spark.tailrace.python.timout"}


@pytest.fixture(scope="module")
def registry() -> dict[str, Setting]:
    return {setting.key: setting for setting in settings_registry()}


def keys_below(*folders: str) -> set[str]:
    files = [
        file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in {".py", ".scala", ".md"}
    ]
    return {key for file in files for key in KEY.findall(file.read_text(encoding="utf-8"))}


def test_every_key_that_is_named_anywhere_is_declared(registry: dict[str, Setting]) -> None:
    named = keys_below("src", "jvm/worker", "docs", "examples", "benchmarks", "tests")
    assert {key for key in named - MADE_UP if not key.startswith(FOR_TESTS)} <= set(registry)


def test_scala_reads_settings_through_the_registry() -> None:
    named = keys_below("jvm/src")
    assert {key for key in named if not key.startswith(FOR_TESTS)} == set()


def test_what_the_registry_says(registry: dict[str, Setting]) -> None:
    assert registry["spark.tailrace.warmup.epochs"].default == "5"
    assert registry["spark.tailrace.python.timeout"].scope == "query"
    assert registry["spark.tailrace.dashboard.port"].default is None
    assert not registry[CLIENT_VERSION_KEY].doc, "it is not for users"
    for setting in registry.values():
        assert not setting.doc or (ROOT / "docs" / setting.page).exists(), setting.key
