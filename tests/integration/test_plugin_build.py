"""The plugin's build: quick, reproducible, only when needed; and the wheel that carries it."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import tailrace
from tests.helpers.tree import ROOT


@pytest.fixture(autouse=True)
def quick_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class or two are compiled before it would pay to optimize the compiler."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("plugin_build", ROOT / "jvm" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.chaos
def test_two_builds_give_the_same_bytes(builder: ModuleType, tmp_path: Path) -> None:
    again = tmp_path / "again.jar"
    assert builder.build(again, force=True) is True
    first, second = (hashlib.sha256(jar.read_bytes()).hexdigest() for jar in (builder.JAR, again))
    assert first == second


def test_the_versions_are_stamped_in(builder: ModuleType) -> None:
    with zipfile.ZipFile(builder.JAR) as jar:
        stamp = dict(line.split("=", 1) for line in jar.read(builder.STAMP).decode().splitlines())
    assert stamp["version"] == tailrace.__version__
    assert stamp["spark"] == "4.3.0"


def test_it_is_compiled_only_when_something_changed(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "src" / "a" / "A.scala"
    copy.parent.mkdir(parents=True)
    copy.write_text("package a\nclass A\n")
    monkeypatch.setattr(builder, "SOURCES", tmp_path / "src")
    jar = tmp_path / "plugin.jar"
    assert builder.build(jar) is True
    assert builder.build(jar) is False
    copy.write_text("package a\nclass A { def b: Int = 1 }\n")
    assert builder.build(jar) is True
    jar.write_bytes(b"not a jar")
    assert builder.build(jar) is True


def test_a_warning_is_an_error(builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "A.scala"
    source.write_text("class A { def b: Int = { val unused = 1; 2 } }\n")
    monkeypatch.setattr(builder, "SOURCES", tmp_path)
    with pytest.raises(builder.BuildError, match="unused"):
        builder.build(tmp_path / "plugin.jar")
    assert not (tmp_path / "plugin.jar").exists()


def test_the_jar_is_not_tracked() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "jvm/build.py" in tracked
    assert [name for name in tracked if name.endswith(".jar")] == []


QUERY = """
import json, sys, tailrace
from pyspark.sql import SparkSession
from tailrace.kafka import EmbeddedKafka
from confluent_kafka import Consumer, Producer, TopicPartition

assert tailrace.__file__.startswith(sys.prefix), tailrace.__file__
with EmbeddedKafka() as kafka:
    kafka.create_topics(["in", "out"])
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = tailrace.configure(builder).getOrCreate()
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    query = (source.option("subscribe", "in").option("startingOffsets", "earliest").load()
        .selectExpr("upper(CAST(value AS STRING)) AS value").writeStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers).option("topic", "out")
        .option("checkpointLocation", "checkpoint").outputMode("update")
        .trigger(realTime="60 seconds").start())
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("in", value=b"hello")
    producer.flush()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g"})
    consumer.assign([TopicPartition("out", 0, 0)])
    message = consumer.poll(40)
    version = spark._jvm.tailrace.BuildInfo.version()
    print(json.dumps({"answer": message.value().decode() if message else None, "plugin": version}))
    consumer.close()
    query.stop()
    spark.stop()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("tailrace-*.whl")
    return built


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "requirements",
    # To copy PySpark takes most of the time: the short way takes what the wheel needs from here.
    ["borrowed", pytest.param("installed", marks=pytest.mark.chaos)],
)
def test_the_wheel_runs_a_query_in_a_clean_environment(wheel: Path, tmp_path: Path, requirements: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "tailrace/_spark/plugin/tailrace-plugin.jar" in archive.namelist()
        assert "tailrace/py.typed" in archive.namelist()
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    install = [str(python), "-m", "pip", "install", "--quiet", str(wheel)]
    if requirements == "borrowed":
        install.append("--no-deps")
        (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run(install, check=True, env=clean, cwd=tmp_path)
    result = subprocess.run(
        [str(python), "-c", QUERY], capture_output=True, text=True, env=clean, cwd=tmp_path, timeout=600, check=False
    )
    assert result.stdout.strip(), result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == {"answer": "HELLO", "plugin": tailrace.__version__}


def test_what_the_package_imports_is_what_it_asks_for() -> None:
    """With everything else in reach, a requirement that is missing would not be missed."""
    asked = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
    names = {re.split(r"[^\w-]", text)[0].replace("-", "_") for text in asked} | {"hdrh", "google", "py4j"}
    imported = {
        module.partition(".")[0]
        for source in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(source.read_text()))
        for module in _modules_of(node)
    }
    optional = {"cryptography", "matplotlib", "sklearn", "prometheus_client", "starlette", "uvicorn"}
    # The jobs of `tailrace bench` for these run in environments of their own.
    peers = {"bytewax", "pyflink", "quixstreams"}
    assert imported - set(sys.stdlib_module_names) - {"tailrace"} <= names | optional | peers


def _modules_of(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and node.level == 0 else []
