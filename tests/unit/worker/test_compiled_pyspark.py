"""Workers import PySpark where Python keeps it compiled, if that is the same PySpark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

from tests.helpers.tree import ROOT

Prefer = Callable[[list[str]], None]


@pytest.fixture
def prefer(monkeypatch: pytest.MonkeyPatch) -> Prefer:
    monkeypatch.syspath_prepend(str(ROOT / "jvm" / "worker"))
    from tailrace_worker.compiled_pyspark import prefer_compiled_pyspark

    return prefer_compiled_pyspark


def installed(site: Path) -> str:
    """An installed PySpark; returns its zipped form, which Spark puts on the path."""
    zipped = site / "pyspark/python/lib/pyspark.zip"
    zipped.parent.mkdir(parents=True)
    zipped.touch()
    (site / "pyspark/__init__.py").touch()
    return str(zipped)


def test_the_package_is_preferred_to_its_own_zip(prefer: Prefer, tmp_path: Path) -> None:
    path = [installed(tmp_path), "/py4j.zip", str(tmp_path)]
    prefer(path)
    assert path == ["/py4j.zip", str(tmp_path)]


def test_another_installation_is_not(prefer: Prefer, tmp_path: Path) -> None:
    """A worker's interpreter may have another PySpark than the driver, or none."""
    installed(tmp_path / "of-the-worker")
    path = [installed(tmp_path / "of-spark"), str(tmp_path / "of-the-worker")]
    before = list(path)
    prefer(path)
    assert path == before


def test_a_zip_without_a_package_stays(prefer: Prefer, tmp_path: Path) -> None:
    """As in a Spark distribution, or an archive that was sent to the executors."""
    zipped = installed(tmp_path)
    (tmp_path / "pyspark/__init__.py").unlink()
    path = [zipped, str(tmp_path), "/elsewhere/pyspark.zip"]
    before = list(path)
    prefer(path)
    assert path == before


def test_the_installed_pyspark_has_this_layout() -> None:
    package = Path(pyspark.__file__).parent
    assert (package / "python/lib/pyspark.zip").is_file()
    assert str(package.parent) in sys.path
