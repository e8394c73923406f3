from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import tailrace
from tailrace import EmbeddedKafka, EmbeddedPostgres, EmbeddedRedis
from tests.helpers import cpu_costs, quick_jvm
from tests.helpers.pipeline import Pipeline
from tests.thorough import is_thorough, unknown

# Before any test module is imported; `make chaos` has JVMs and Python workers as users have them.
QUICK = os.environ.setdefault(quick_jvm.VARIABLE, quick_jvm.OPTIONS) == quick_jvm.OPTIONS
if QUICK:
    quick_python = Path(__file__).parent / "helpers" / "quick_python"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(quick_python), os.environ.get("PYTHONPATH")]))
# A shell that starts the tests in the background lets them ignore SIGINT, and every process that a test interrupts too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The port of a broker that the parent process has started.
SHARED_BROKER = "TAILRACE_TESTS_BROKER"

# Begun last, one of them would keep one process busy while the others have nothing left to do.
LONG_ONES = (
    *("corpus", "demo", "run_application", "harness", "examples", "operators", "overlap_state", "exactly_once_joins"),
    *("exactly_once", "failures", "bench", "docs"),
)


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In the order in which processes take the files (--no-loadscope-reorder)."""
    whole_files = not any("::" in argument for argument in config.args)
    if whole_files and (gone := unknown(item.nodeid for item in items)):
        raise pytest.UsageError(f"tests/thorough.py lists what is not there: {', '.join(sorted(gone))}")
    for item in items:
        if is_thorough(item.nodeid):
            item.add_marker(pytest.mark.thorough)
    order = {f"test_{name}": place for place, name in enumerate(LONG_ONES)}
    items.sort(key=lambda item: order.get(item.path.stem, len(order)))


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The developer's own background broker is not the tests' business."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAILRACE_STATE", str(tmp_path_factory.mktemp("state")))
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-costs", action="store_true", help="end with the CPU time of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Processes that run tests at the same time share a broker: more of them would take CPU time from the tests."""
    if config.getoption("--cpu-costs"):
        config.pluginmanager.register(cpu_costs)
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        broker = EmbeddedKafka().start()
        config.add_cleanup(broker.stop)
        os.environ[SHARED_BROKER] = str(broker.port)


@pytest.fixture(scope="session")
def kafka() -> Iterator[EmbeddedKafka]:
    """To be killed or stopped by no test."""
    if port := os.environ.get(SHARED_BROKER):
        yield EmbeddedKafka(port=int(port))
    else:
        with EmbeddedKafka() as broker:
            yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis() as server:
        yield server


@pytest.fixture(scope="module")
def new_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., SparkSession]]:
    """Starts a configured session on a master; the last one is stopped when the module ends."""
    started: list[SparkSession] = []

    def start(
        master: str,
        settings: dict[str, str] | None = None,
        *,
        postgresql_driver: bool = False,
        redis_client: bool = False,
    ) -> SparkSession:
        if settings and SparkContext._gateway is None:
            # The settings of the first session of a process stay with its JVM, as defaults of all later ones.
            start(master)
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
            # One task for a table of one row, and not one for each slot with Python workers of its own.
            .config("spark.default.parallelism", "1")
            # Most tests say themselves when an epoch ends.
            .config("spark.tailrace.warmup.epochs", "0")
        )
        if QUICK:
            # Executors in other processes have another working folder, from which they cannot import the tests.
            own = "pyspark.daemon" if master.startswith("local-cluster") else "tests.helpers.preloaded_daemon"
            builder = builder.config("spark.python.daemon.module", own)
        for key, value in (settings or {}).items():
            builder = builder.config(key, value)
        builder = tailrace.configure(builder, postgresql_driver=postgresql_driver, redis_client=redis_client)
        spark = builder.getOrCreate()
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
