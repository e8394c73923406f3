"""A sizing from a topic, from a run, and by the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from tailrace import EmbeddedKafka, TailraceError
from tailrace.cli.size import size
from tailrace.contract.codec import decode
from tailrace.contract.query_description import Operator
from tailrace.contract.snapshot import QueryFigures
from tailrace.dashboard import Dashboard, serve
from tailrace.size import (
    Load,
    load_of_run,
    shape_of_run,
    shape_of_topic,
    size_of,
)
from tailrace.size.by_hand import shape_by_hand
from tailrace.size.of_topic import topic_partitions
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query
from tests.helpers.topics import new_topic
from tests.unit.size.figures import MEASURED


def run_of(name: str, **how: Any) -> QueryFigures:
    return decode(QueryFigures, make_query(name, **how))


class TestOfARun:
    def test_its_load(self) -> None:
        load = load_of_run(run_of("fraud", ran_s=1000, epoch_s=60))
        assert (load.rows_per_s, load.throughput_rows_per_s, load.throughput_is_lower_bound) == (12_340, 12_340, True)
        assert load.keys == 184_220
        assert load.boundary_ms is not None
        assert 190 <= load.boundary_ms <= 320

    def test_with_a_backlog_it_shows_what_it_can_do_and_not_what_arrives(self) -> None:
        load = load_of_run(run_of("alerts", status="lagging"))
        assert (load.rows_per_s, load.throughput_rows_per_s, load.throughput_is_lower_bound) == (None, 12_340, False)

    def test_that_has_just_begun(self) -> None:
        assert load_of_run(run_of("new", empty=True)) == Load(throughput_is_lower_bound=True)

    def test_its_shape(self) -> None:
        shape = shape_of_run(run_of("fraud", partitions=6, epoch_s=60))
        assert (shape.arithmetic, shape.stateful, shape.sink, shape.epoch_ms) == ("6 + 4 = 10", True, "kafka", 60_000)
        assert [stage.stateful for stage in shape.stages] == [False, True]
        assert Operator("pandas_udf") in shape.stages[0].operators


class TestTopic:
    def test_its_partitions_are_the_source_s_tasks(self, kafka: EmbeddedKafka) -> None:
        topic = new_topic(kafka.bootstrap_servers, "sizing", partitions=3)
        assert topic_partitions(kafka.bootstrap_servers, topic) == 3
        shape = shape_of_topic(kafka.bootstrap_servers, topic, [20, 20])
        assert shape.arithmetic == "3 + 20 + 20 = 43"
        assert shape.stages[0].sources == (f"kafka: {topic}",)
        printed = run("--topic", topic, "--bootstrap-servers", kafka.bootstrap_servers, "--shuffle-partitions", "20")
        assert "Task slots: 3 + 20 = 23\n" in printed.stdout

    def test_there_is_no_such_topic(self, kafka: EmbeddedKafka) -> None:
        assert failed("--topic", "no-such", "--bootstrap-servers", kafka.bootstrap_servers) == "TAILRACE_BAD_SIZE"
        with pytest.raises(TailraceError, match="no-such"):
            topic_partitions(kafka.bootstrap_servers, "no-such")

    def test_no_broker_answers(self) -> None:
        assert failed("--topic", "any", "--bootstrap-servers", "127.0.0.1:1") == "TAILRACE_BROKER_UNREACHABLE"


@pytest.fixture
def monitor() -> SyntheticMonitor:
    return SyntheticMonitor(make_query("fraud"), make_query("gone", status="ended"))


@pytest.fixture
def dashboard(monitor: SyntheticMonitor) -> Iterator[Dashboard]:
    with serve(monitor) as served:
        yield served


class TestCommand:
    def test_prints_what_the_library_says(self) -> None:
        printed = run("--stages", "8,20,20", "--rate", "50000", "--throughput", "200000", "--keys", "1000000")
        assert printed.stdout == f"{size_of(shape_by_hand([8, 20, 20]), MEASURED)}\n"

    def test_every_figure_is_taken(self) -> None:
        printed = run(
            *("--stages", "8,20", "--rate", "50000", "--throughput", "200000", "--measured-cores", "16"),
            *("--keys", "1000", "--state-bytes-per-key", "64", "--row-bytes", "32", "--boundary-ms", "250"),
            *("--utilization", "0.25", "--cores-per-executor", "7", "--recovery-s", "30", "--json"),
        )
        assert (
            json.loads(printed.stdout)
            == size_of(
                shape_by_hand([8, 20]),
                Load(
                    rows_per_s=50_000,
                    throughput_rows_per_s=200_000,
                    throughput_cores=16,
                    keys=1000,
                    state_bytes_per_key=64,
                    row_bytes=32,
                    boundary_ms=250,
                    utilization=0.25,
                    cores_per_executor=7,
                    max_recovery_s=30,
                ),
            ).to_dict()
        )

    def test_plot(self, tmp_path: Path) -> None:
        printed = run("--stages", "8", "--plot", str(tmp_path / "plot.svg"), "--json")
        assert json.loads(printed.stdout)["slots"] == 8
        assert "plot.svg" in printed.stderr
        assert (tmp_path / "plot.svg").stat().st_size > 10_000

    @pytest.mark.parametrize(
        "arguments",
        [
            (),
            ("--stages", "8", "--rate", "fast"),
            ("--stages", "8", "--topic", "payments", "--bootstrap-servers", "somewhere:9092"),
            ("--topic", "payments"),
            ("--stages", "8", "--shuffle-partitions", "20"),
            ("--stages", "8", "--query", "fraud"),
        ],
    )
    def test_wrong_usage(self, arguments: tuple[str, ...]) -> None:
        result = CliRunner().invoke(command(), arguments)
        assert result.exit_code == 2
        assert "Usage" in result.stderr

    def test_bad_figures_are_an_error(self) -> None:
        assert failed("--stages", "8,x") == "TAILRACE_BAD_SIZE"
        assert failed("--stages", "8", "--rate", "0") == "TAILRACE_BAD_SIZE"
        assert failed("--stages", "8", "--plot", "plot.gif") == "TAILRACE_BAD_SIZE"

    def test_a_running_application(self, dashboard: Dashboard) -> None:
        figures = json.loads(run("--dashboard", dashboard.url, "--json").stdout)
        assert (figures["arithmetic"], figures["rows_per_s"], figures["keys"]) == ("6 + 4 = 10", 12_340, 184_220)
        assert figures["throughput_is_lower_bound"]
        assert not figures["boundary_is_estimate"]

    def test_figures_by_hand_win(self, dashboard: Dashboard) -> None:
        printed = run(
            "--dashboard", dashboard.url, "--stages", "8,20", "--throughput", "100000", "--keys", "7", "--json"
        )
        figures = json.loads(printed.stdout)
        assert (figures["slots"], figures["rows_per_s"], figures["keys"]) == (28, 12_340, 7)
        assert (figures["throughput_rows_per_s"], figures["throughput_is_lower_bound"]) == (100_000, False)

    def test_which_query(self, dashboard: Dashboard, monitor: SyntheticMonitor) -> None:
        monitor.queries.append(make_query("alerts", partitions=3))
        assert failed("--dashboard", dashboard.url) == "TAILRACE_BAD_SIZE"
        assert failed("--dashboard", dashboard.url, "--query", "no-such") == "TAILRACE_BAD_SIZE"
        figures = json.loads(run("--dashboard", dashboard.url, "--query", "alerts", "--json").stdout)
        assert figures["arithmetic"] == "3 + 4 = 7"

    def test_no_application(self) -> None:
        assert failed("--dashboard", "127.0.0.1:1") == "TAILRACE_DASHBOARD_UNREACHABLE"


def command() -> typer.Typer:
    app = typer.Typer()
    app.command()(size)
    return app


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command(), arguments)
    assert result.exit_code == 0, result.output
    return result


def failed(*arguments: str) -> str:
    """The code of the error that it ends with."""
    result = CliRunner().invoke(command(), arguments)
    assert isinstance(result.exception, TailraceError)
    return result.exception.code
