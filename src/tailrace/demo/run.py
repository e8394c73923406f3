"""The demo from start to end: broker, Spark, the same query in both modes, and a clean exit."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.markup import escape

from tailrace._kafka.cluster import Servers
from tailrace._process.console import console, working
from tailrace._process.machine_load import stretched
from tailrace._process.paths import log_file
from tailrace._spark import maven
from tailrace._spark.logged_session import start_with_log
from tailrace.contract.snapshot import BoundaryPause
from tailrace.dashboard.application import dashboard
from tailrace.demo.model import FraudModel, train
from tailrace.demo.options import DemoOptions, DemoResult, Mode, SinkName
from tailrace.demo.query import decide, read_payments
from tailrace.demo.sinks import Sink, open_sink
from tailrace.demo.view import DemoView
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka, create_topics, delete_topics, require_broker
from tailrace.loadtest import LatencyReport, LoadTest, epoch_ends, raise_if_ended
from tailrace.loadtest.epochs import wait_for_epochs
from tailrace.monitor.measure import latency
from tailrace.session import configure

PARTITIONS = 2
SHUFFLE_PARTITIONS = 2
# Every stage of a real-time query runs at once: readers + aggregators, and one slot to spare.
# Two epochs at once: the next one takes over while the one before still runs.
SLOTS = 2 * (PARTITIONS + SHUFFLE_PARTITIONS) + 1
SHORTEST_EPOCH_KEY = "spark.sql.streaming.realTimeMode.minBatchDuration"
WARM_UP_EPOCHS = 8
OUTPUT_WITHIN_S = 90
WARM_UP_S = 8
STOPPED_WITHIN_S = 20
SECONDS_OF_A_KEPT_EPOCH = 60


def run_demo(options: DemoOptions, view: DemoView, on_measured: Callable[[DemoResult], None]) -> DemoResult:
    """Measure each mode, hand over the result, and with `keep` continue until Ctrl-C."""
    view.introduce(options.rate, options.epoch_s, options.sink)
    model = _model()
    with ExitStack() as stack:
        folder = _checkpoint_folder(options.checkpoint_location, stack)
        topics = _Topics(_broker(options, stack))
        if options.cluster is not None:
            # An embedded broker deletes its topics when it stops.
            stack.callback(topics.delete)
        sink = stack.enter_context(open_sink(options.sink, topics.cluster))
        spark, log = _spark(options.sink, stack)
        _show_dashboard(spark, stack)
        run = _Run(spark, topics, sink, model, options, folder)
        reports = {mode: run.measure(mode, view) for mode in options.modes}
        result = DemoResult(options, reports, log, run.pause, run.cold_pauses_ms)
        on_measured(result)
        if options.keep:
            run.go_on()
        return result


def _model() -> FraudModel:
    with working("Training a fraud model"):
        model = train()
    console.print(
        f"The model finds {model.recall:.0%} of the fraud in payments it has not seen; "
        f"{model.precision:.0%} of what it flags is fraud."
    )
    return model


def _checkpoint_folder(parent: Path | None, stack: ExitStack) -> Path:
    try:
        folder = Path(tempfile.mkdtemp(prefix="tailrace-demo-", dir=parent))
    except OSError as failure:
        raise TailraceError(
            "TAILRACE_FOLDER_NOT_WRITABLE",
            f"checkpoints cannot be written to {parent or 'the temporary folder'}: {failure.strerror}.",
            "choose an existing, writable folder with --checkpoint-location.",
        ) from None
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _broker(options: DemoOptions, stack: ExitStack) -> Servers:
    if options.cluster is not None:
        require_broker(options.cluster)
        return options.cluster
    maven.resolve(maven.KAFKA_BROKER)
    with working("Starting an embedded Apache Kafka"):
        return stack.enter_context(EmbeddedKafka()).bootstrap_servers


def _spark(sink: SinkName, stack: ExitStack) -> tuple[SparkSession, Path]:
    maven.resolve(maven.KAFKA_CONNECTOR)
    log = log_file("demo-spark")
    with working(f"Starting Spark (log: {log})"):
        builder = (
            SparkSession.builder.master(f"local[{SLOTS}]")
            .appName("tailrace-demo")
            .config("spark.sql.shuffle.partitions", SHUFFLE_PARTITIONS)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "2g")
        )
        stores = {"postgresql_driver": sink is SinkName.POSTGRESQL, "redis_client": sink is SinkName.REDIS}
        spark = start_with_log(configure(builder, **stores), log)
    stack.callback(_stop, spark.stop)
    return spark, log


def _show_dashboard(spark: SparkSession, stack: ExitStack) -> None:
    """Serve the dashboard, which shows the real-time queries."""
    try:
        stack.callback(dashboard(spark).stop)
    except TailraceError as missing:
        console.print(f"[yellow]No dashboard:[/] {escape(missing.problem)} {escape(missing.fix)}", soft_wrap=True)


class _Topics:
    """Fresh topics for each query, deleted together at the end.

    They are not deleted as soon as their query stops: a reader that is being canceled would wait a minute for a
    deleted topic, and hold its task slot meanwhile.
    """

    def __init__(self, cluster: Servers) -> None:
        self.cluster = cluster
        self._names: list[str] = []

    def new_pair(self) -> tuple[str, str]:
        name = f"tailrace-demo-{uuid.uuid4().hex[:8]}"
        pair = f"{name}-payments", f"{name}-decisions"
        self._names += pair
        create_topics(self.cluster, pair, partitions=PARTITIONS)
        return pair

    def delete(self) -> None:
        left = delete_topics(self.cluster, self._names) if self._names else []
        if left:
            console.print(f"[yellow]These topics could not be deleted:[/] {', '.join(left)}")


class _Run:
    """Runs the query in one mode after the other, each time with its own topics and checkpoint."""

    def __init__(
        self, spark: SparkSession, topics: _Topics, sink: Sink, model: FraudModel, options: DemoOptions, folder: Path
    ) -> None:
        self.spark = spark
        self.sink = sink
        self.model = model
        self.topics = topics
        self.cluster = topics.cluster
        self.options = options
        self.folder = folder
        self.pause: BoundaryPause | None = None
        self.cold_pauses_ms: tuple[float, ...] = ()

    def measure(self, mode: Mode, view: DemoView) -> LatencyReport:
        with view.phase(f"Warming up ({mode.value})"):
            self._warm_up(mode)
        epoch = f"{self.options.epoch_s} seconds" if mode is Mode.REAL_TIME else None
        seconds = self.options.seconds_of(mode)
        with self._query(epoch) as (query, load):
            check = raise_if_ended(query)
            load.wait_for_output(
                timeout_s=stretched(OUTPUT_WITHIN_S), records=WARM_UP_S * self.options.rate // 2, check=check
            )
            with view.measuring(mode.value, seconds) as load.on_snapshot:
                report = load.measure(seconds=seconds, check=check)
            if mode is not Mode.REAL_TIME:
                return report
            self.pause = latency(query).figures.pause
            return report.with_epoch_ends(epoch_ends(query))

    def go_on(self) -> None:
        """Run in Real-Time Mode until Ctrl-C."""
        with self._query(f"{SECONDS_OF_A_KEPT_EPOCH} seconds") as (query, _load):
            console.print(
                "The query keeps running in Real-Time Mode, so you can look at its dashboard. Ctrl-C ends the demo."
            )
            check = raise_if_ended(query)
            try:
                while True:
                    check()
                    time.sleep(1)
            except KeyboardInterrupt:
                console.print("Stopping.")

    def _warm_up(self, mode: Mode) -> None:
        """Warm up, so both modes are measured with compiled code, connected clients and some boundaries passed."""
        if mode is Mode.MICRO_BATCH:
            with self._query(None) as (query, load):
                records = WARM_UP_S * self.options.rate
                load.wait_for_output(timeout_s=stretched(OUTPUT_WITHIN_S), records=records, check=raise_if_ended(query))
            return
        # The first boundaries in a cold JVM take seconds. Short epochs get past many of them quickly: the shortest that
        # overlap, as the measured ones do.
        self.spark.conf.set(SHORTEST_EPOCH_KEY, "2000")
        try:
            with self._query("2 seconds") as (query, load):
                check = raise_if_ended(query)
                load.wait_for_output(timeout_s=stretched(OUTPUT_WITHIN_S), check=check)
                wait_for_epochs(query, WARM_UP_EPOCHS, check=check)
                boundaries = latency(query).figures.boundaries
                self.cold_pauses_ms = tuple(boundary.pause_ms for boundary in boundaries)
        finally:
            _stop(lambda: self.spark.conf.unset(SHORTEST_EPOCH_KEY))

    @contextmanager
    def _query(self, epoch: str | None) -> Iterator[tuple[StreamingQuery, LoadTest]]:
        payments, decisions = self.topics.new_pair()
        decided = decide(read_payments(self.spark, self.cluster, payments), self.model)
        writer = self.sink.write(decided, decisions, self.folder / decisions)
        # The one line that differs between the modes.
        if epoch is not None:
            writer = writer.trigger(realTime=epoch)  # type: ignore[call-overload]  # not in PySpark's hints
        query = writer.start()
        try:
            with self._load(payments, decisions, folds=epoch is None) as load:
                yield query, load
        finally:
            _stop(query.stop)

    def _load(self, payments: str, decisions: str, *, folds: bool) -> LoadTest:
        return LoadTest(
            bootstrap_servers=self.cluster,
            input_topic=payments,
            rate=self.options.rate,
            encode="tailrace.demo.payments:encode_payment",
            **self.sink.observed_by(decisions, self.options.rate, folds=folds),
        )


def _stop(stop: Callable[[], None]) -> None:
    """Stop something in the JVM, even if Ctrl-C has just interrupted a call to it.

    Each thread has its own connection; the interrupted one may still hold a half-read answer.
    """
    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    thread.join(STOPPED_WITHIN_S)
