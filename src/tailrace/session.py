"""`configure`: make a Spark session ready for Real-Time Mode, and keep what the user set."""

from __future__ import annotations

from pyspark.sql import SparkSession
from rich.markup import escape

from tailrace._process.console import console
from tailrace._spark.session_builder import RealTimeBuilder
from tailrace.check.start_hook import check_at_start
from tailrace.dashboard.application import dashboard, port_of
from tailrace.errors import TailraceError
from tailrace.monitor import monitor_of
from tailrace.supervise.run_folder import is_supervised, report_exit
from tailrace.supervise.warm_workers import warm_workers


def configure(
    builder: SparkSession.Builder,
    *,
    kafka_connector: bool = True,
    postgresql_driver: bool = False,
    redis_client: bool = False,
) -> SparkSession.Builder:
    """Add the Tailrace plugin, the Kafka connector and the real-time defaults to a session builder.

        spark = tailrace.configure(SparkSession.builder.master("local[8]")).getOrCreate()

    Lists (`spark.jars`, `spark.sql.extensions`, `spark.plugins`, streaming listeners) are merged with the user's. Any
    other setting made on the builder, with spark-submit or in spark-defaults.conf wins over Tailrace's default.
    The first call on a machine downloads the Kafka connector's jars; later calls work offline.

    :param builder: the session builder to complete. What is set on it afterwards still counts.
    :param kafka_connector: add the jars of Spark's Kafka source and sink. They are not added if the user already names
        a `spark-sql-kafka` jar or package.
    :param postgresql_driver: add the jar of PostgreSQL's JDBC driver, for the sink `tailrace-postgresql`.
    :param redis_client: add the jars of Jedis, for the sink `tailrace-redis`.
    """
    return RealTimeBuilder.completing(
        builder,
        kafka_connector=kafka_connector,
        postgresql_driver=postgresql_driver,
        redis_client=redis_client,
        on_session=_prepare,
    )


def _prepare(session: SparkSession) -> None:
    """Check the session's queries before they start, and monitor them from their first row."""
    monitor = monitor_of(session)
    check_at_start()
    report_exit(monitor.latest)
    if port_of(session) is not None or is_supervised():
        _serve_dashboard(session)
    warm_workers(session)


def _serve_dashboard(session: SparkSession) -> None:
    try:
        try:
            dashboard(session)
        except TailraceError:
            # A supervisor drains through the dashboard: another port is better than none.
            if not is_supervised():
                raise
            dashboard(session, port=0)
    except TailraceError as problem:
        # Queries run without a dashboard, and a second application on the machine finds the port taken.
        console.print(f"[yellow]No dashboard:[/] {escape(problem.problem)} {escape(problem.fix)}", soft_wrap=True)
