"""The snapshot as Prometheus metrics: base units, and a number of series that does not grow with the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tailrace.contract.snapshot import ACTIVE, FIGURES, PAUSE_PARTS, Distribution, PartitionFigures, Snapshot
from tailrace.monitor.health import current_runs

# Series cost memory in Prometheus for as long as it keeps them; a topic may have thousands of partitions.
MOST_PARTITIONS = 50
MOST_QUERIES = 50
MOST_EXECUTORS = 500

WINDOW = "1m"
QUANTILES = {"0.5": "p50_ms", "0.9": "p90_ms", "0.99": "p99_ms", "0.999": "p999_ms", "1": "max_ms"}

Sample = tuple[Sequence[str], float | None]


def exposition(snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
    """The metrics and their content type, in the format that the scraper accepts."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version that is not a number
        encode, content_type = choose_encoder("")
    return encode(SnapshotCollector(snapshot)), content_type


class SnapshotCollector(Collector):
    def __init__(self, snapshot: Snapshot) -> None:
        self._queries = dict(list(current_runs(snapshot.queries).items())[:MOST_QUERIES])
        self._executors = snapshot.executors[:MOST_EXECUTORS]

    def collect(self) -> Iterator[Metric]:
        yield from self._traffic()
        yield from self._latencies()
        yield from self._epochs()
        yield from self._state()
        yield from self._verdicts()
        yield from self._machines()

    def _traffic(self) -> Iterator[Metric]:
        for name, what, key in (
            ("tailrace_rows_read", "Rows that this run of the query has read.", "rows_in"),
            ("tailrace_rows_written", "Rows that this run of the query has handed to its sink.", "rows_out"),
        ):
            family = CounterMetricFamily(name, what, labels=["query"])
            for label, query in self._queries.items():
                family.add_metric([label], getattr(query.windows["run"], key))
            yield family
        bad_records = CounterMetricFamily(
            "tailrace_bad_records", "Records that this run of the query could not process.", labels=["query"]
        )
        for label, query in self._queries.items():
            bad_records.add_metric([label], query.bad_records.records)
        yield bad_records
        yield gauge(
            "tailrace_lag_rows",
            f"Rows behind the newest offset; the {MOST_PARTITIONS} partitions with the most.",
            ("query", "topic", "partition"),
            self._of_worst_partitions(
                lambda partition: partition.lag_rows,
                lambda partition: [((), partition.lag_rows)],
            ),
        )

    def _latencies(self) -> Iterator[Metric]:
        yield gauge(
            "tailrace_latency_seconds",
            "Latency over the last minute, by figure; quantile 1 is the maximum.",
            ("query", "figure", "quantile"),
            (
                ((label, figure, *quantile), value)
                for label, query in self._queries.items()
                for figure in FIGURES
                for quantile, value in quantiles(query.windows[WINDOW].figure(figure))
            ),
        )
        yield gauge(
            "tailrace_stage_latency_seconds",
            "A row's way through the stage, over the last minute.",
            ("query", "stage", "quantile"),
            (
                ((label, str(stage.stage), *quantile), value)
                for label, query in self._queries.items()
                for stage in query.stages
                for quantile, value in quantiles(stage.windows[WINDOW].time)
            ),
        )
        yield gauge(
            "tailrace_partition_latency_seconds",
            f"End to end over the last minute; the {MOST_PARTITIONS} partitions with the highest p99.",
            ("query", "topic", "partition", "quantile"),
            self._of_worst_partitions(
                lambda partition: found.p99_ms if (found := partition.windows[WINDOW].end_to_end) else None,
                lambda partition: quantiles(partition.windows[WINDOW].end_to_end),
            ),
        )

    def _epochs(self) -> Iterator[Metric]:
        queries = self._queries.items()
        yield gauge(
            "tailrace_epoch_number",
            "The epoch that is open.",
            ("query",),
            (((label,), query.epoch.number) for label, query in queries),
        )
        yield gauge(
            "tailrace_epoch_boundary_pause_seconds",
            "How long nothing was read at the last epoch boundary.",
            ("query",),
            (((label,), seconds(query.boundaries[-1].pause_ms)) for label, query in queries if query.boundaries),
        )
        yield gauge(
            "tailrace_epoch_boundary_part_seconds",
            "What that pause was made of: the tasks' end, the driver's logs, its plan, the next tasks' launch.",
            ("query", "part"),
            (
                ((label, part), seconds(getattr(parts, part)))
                for label, query in queries
                if query.boundaries and (parts := query.boundaries[-1].parts_ms)
                for part in PAUSE_PARTS
            ),
        )

    def _state(self) -> Iterator[Metric]:
        labels = ("query", "operator")
        held = [(label, state) for label, query in self._queries.items() for state in query.state]
        for name, what, key in (
            ("tailrace_state_rows", "Rows of state at the end of the last epoch.", "rows"),
            ("tailrace_state_memory_bytes", "Memory of the state at the end of the last epoch.", "memory_bytes"),
        ):
            # A query may have two operators of one kind: together they hold the sum.
            total: dict[tuple[str, str], float] = {}
            for label, state in held:
                total[label, state.operator] = total.get((label, state.operator), 0) + getattr(state, key)
            yield gauge(name, what, labels, total.items())
        slowest = sorted(held, key=lambda one: -one[1].commit_ms)
        yield gauge(
            "tailrace_state_commit_seconds",
            "Time to commit the state at the end of the last epoch.",
            labels,
            (((label, state.operator), seconds(state.commit_ms)) for label, state in slowest),
        )

    def _verdicts(self) -> Iterator[Metric]:
        yield gauge(
            "tailrace_findings",
            "1 for each kind of finding that the query has now.",
            ("query", "code"),
            (((label, finding.code), 1) for label, query in self._queries.items() for finding in query.findings),
        )
        yield gauge(
            "tailrace_query_up",
            "1 while the query runs, 0 after it ended or failed.",
            ("query",),
            (((label,), int(query.status in ACTIVE)) for label, query in self._queries.items()),
        )

    def _machines(self) -> Iterator[Metric]:
        yield gauge(
            "tailrace_gc_pause_max_seconds",
            "The longest garbage collection pause of the last 10 s.",
            ("executor",),
            (((executor.id,), seconds(executor.gc_max_ms)) for executor in self._executors),
        )
        yield gauge(
            "tailrace_cpu_load_ratio",
            "How busy the executor's machine is; 1 is all its cores.",
            ("executor",),
            (((executor.id,), executor.cpu_load) for executor in self._executors),
        )

    def _of_worst_partitions(
        self,
        badness: Callable[[PartitionFigures], float | None],
        samples: Callable[[PartitionFigures], Iterable[Sample]],
    ) -> Iterator[Sample]:
        for label, query in self._queries.items():
            known = [partition for partition in query.partitions if badness(partition) is not None]
            for partition in sorted(known, key=lambda one: -(badness(one) or 0))[:MOST_PARTITIONS]:
                for more_labels, value in samples(partition):
                    yield (label, partition.topic, str(partition.partition), *more_labels), value


def gauge(name: str, what: str, labels: Sequence[str], samples: Iterable[Sample]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=labels)
    # A series may appear once only, else the scraper refuses everything; the first is the worst one.
    seen = set()
    for values, value in samples:
        if value is not None and tuple(values) not in seen:
            seen.add(tuple(values))
            family.add_metric(values, value)
    return family


def quantiles(dist: Distribution | None) -> Iterator[Sample]:
    if dist is not None:
        for quantile, key in QUANTILES.items():
            yield (quantile,), seconds(getattr(dist, key))


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
