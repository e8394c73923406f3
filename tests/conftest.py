from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tailrace
from tailrace import EmbeddedKafka, EmbeddedPostgres
from tests.helpers import quick_jvm
from tests.helpers.pipeline import Pipeline

# Before any test module is imported; `make chaos` has JVMs as users have them.
os.environ.setdefault(quick_jvm.VARIABLE, quick_jvm.OPTIONS)
# A shell that starts the tests in the background lets them ignore SIGINT, and every process that a test interrupts too.
signal.signal(signal.SIGINT, signal.default_int_handler)


# Begun last, one of them would keep one process busy while the other has nothing left to do.
LONG_ONES = ("corpus", "harness", "run_application", "demo", "parity", "examples", "latency", "bench", "docs")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In the order in which processes take the files (--no-loadscope-reorder)."""
    order = {f"test_{name}": place for place, name in enumerate(LONG_ONES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The developer's own background broker is not the tests' business."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAILRACE_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture(scope="module")
def new_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., SparkSession]]:
    """Starts a configured session on a master; the last one is stopped when the module ends."""
    started: list[SparkSession] = []

    def start(master: str, settings: dict[str, str] | None = None, *, postgresql_driver: bool = False) -> SparkSession:
        while started:
            started.pop().stop()
        # One folder for all: a JVM remembers the first one that it was given.
        local_dir = tmp_path_factory.getbasetemp() / "spark-local"
        local_dir.mkdir(exist_ok=True)
        builder = (
            SparkSession.builder.master(master)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.local.dir", str(local_dir))
            .config("spark.sql.shuffle.partitions", "2")
            # Most tests say themselves when an epoch ends.
            .config("spark.tailrace.warmup.epochs", "0")
        )
        for key, value in (settings or {}).items():
            builder = builder.config(key, value)
        spark = tailrace.configure(builder, postgresql_driver=postgresql_driver).getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        started.append(spark)
        return spark

    yield start
    while started:
        started.pop().stop()


@pytest.fixture(scope="module")
def spark(new_session: Callable[[str], SparkSession]) -> SparkSession:
    return new_session("local[6]")


@pytest.fixture(autouse=True)
def no_query_left() -> Iterator[None]:
    """A query that a failed test left running would take the slots of the tests after it."""
    yield
    session = SparkSession.getActiveSession()
    for query in session.streams.active if session is not None else []:
        query.stop()


@pytest.fixture
def unwritable_folder() -> Path:
    # The tests may run as root, for whom a read-only mode is no obstacle.
    return Path("/proc/tailrace-cannot-write-here")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "checkpoint"
    shutil.rmtree(tmp_path / "checkpoint", ignore_errors=True)


@pytest.fixture
def pipeline(spark: SparkSession, kafka: EmbeddedKafka, checkpoint: Path) -> Pipeline:
    return Pipeline(spark, kafka, checkpoint)


@pytest.fixture
def waits_for_silent_partitions(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Lets the watermark of the queries that are started then move within an epoch."""
    setting = "spark.tailrace.watermark.idleAfter"
    yield lambda length: spark.conf.set(setting, length)
    spark.conf.unset(setting)
