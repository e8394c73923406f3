"""Sets up broker, proxy, topics, load and driver. All of them end with the run."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tailrace._broker.ports import HOST
from tailrace._spark import maven
from tailrace.chaos._events import Event
from tailrace.chaos._settings import Settings, checkpoint_of
from tailrace.chaos.driver import Driver
from tailrace.chaos.faults import MOST_PARTITIONS
from tailrace.chaos.load import Encode, Load
from tailrace.chaos.options import ChaosOptions, UsersQuery
from tailrace.chaos.output_watcher import OutputWatcher
from tailrace.chaos.proxy import TcpProxy
from tailrace.chaos.records import record
from tailrace.chaos.testbed import DriverVariant, Testbed
from tailrace.chaos.topics import beginnings, new_reader
from tailrace.chaos.workloads import WORKLOADS
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka, require_broker

PARTITIONS = 2
MOST_SHUFFLE_PARTITIONS = 3
EXECUTORS = 2


def set_up_built_in_queries(options: ChaosOptions, log: Path, stack: ExitStack) -> Testbed:
    """The built-in queries, on a broker of their own behind a proxy."""
    maven.resolve(maven.KAFKA_CONNECTOR)
    folder = Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    proxy = stack.enter_context(TcpProxy())
    broker = stack.enter_context(EmbeddedKafka(proxy_port=proxy.port))
    proxy.target_port = broker.proxied_port
    outputs = {query: query.replace("/", "-") for query in options.queries}
    broker.create_topics(["input", *outputs.values()], partitions=PARTITIONS)
    variant, starts = DriverVariant(), itertools.count()
    for query in options.queries:
        checkpoint_of(folder, query).mkdir(parents=True)

    def command() -> list[str]:
        readings = sum(WORKLOADS[query.partition("/")[0]].readings for query in outputs)
        slots = readings * MOST_PARTITIONS + len(outputs) * MOST_SHUFFLE_PARTITIONS + 2
        settings = Settings(
            # Twice as many slots as needed: a query that starts again may find its old tasks still at work.
            master=f"local-cluster[{EXECUTORS},{slots},1024]" if variant.on_cluster else f"local[{EXECUTORS * slots}]",
            bootstrap_servers=f"{HOST}:{proxy.port}",
            input_topic="input",
            outputs=outputs,
            folder=str(folder),
            epoch_s=options.epoch_s,
            shuffle_partitions=variant.shuffle_partitions,
            # In turn: with it commits are many, without it much is open when the next blow falls.
            warm_up=next(starts) % 2 == 1,
        )
        return ["tailrace.chaos._app", settings.to_json()]

    def encode(number: int) -> tuple[str, bytes]:
        made = record(number)
        return made.key, made.to_json()

    events: list[Event] = []
    load = _load(broker.bootstrap_servers, "input", PARTITIONS, encode, options, stack)
    watcher = OutputWatcher(
        broker.bootstrap_servers,
        outputs,
        number_field="number",
        row_fields={query: WORKLOADS[query.partition("/")[0]].row_field for query in outputs},
        partition_of=load.partition_of,
    )
    stack.callback(watcher.close)
    driver = Driver(command, log, events.append)
    stack.callback(driver.kill)
    return Testbed(
        broker.bootstrap_servers,
        options.queries,
        driver,
        load,
        watcher,
        outputs,
        broker=broker,
        proxy=proxy,
        checkpoints=folder / "checkpoints",
        variant=variant,
        events=events,
    )


def set_up_users_query(yours: UsersQuery, options: ChaosOptions, log: Path, stack: ExitStack) -> Testbed:
    """The user's script, between the user's topics."""
    yours.require_readable_template()
    require_broker(yours.bootstrap_servers)
    partitions = _partitions(yours)
    outputs = dict.fromkeys(options.queries, yours.output_topic)
    load = _load(yours.bootstrap_servers, yours.input_topic, partitions, yours.encode, options, stack)
    watcher = OutputWatcher(
        yours.bootstrap_servers,
        outputs,
        number_field=yours.id_field,
        row_fields=dict.fromkeys(outputs, yours.id_field),
        partition_of=load.partition_of,
    )
    stack.callback(watcher.close)
    command = ["tailrace.chaos._script", str(yours.script), *yours.arguments]
    events: list[Event] = []
    driver = Driver(lambda: command, log, events.append)
    stack.callback(driver.kill)
    return Testbed(yours.bootstrap_servers, options.queries, driver, load, watcher, outputs, events=events)


def _load(
    bootstrap_servers: str, topic: str, partitions: int, encode: Encode, options: ChaosOptions, stack: ExitStack
) -> Load:
    load = Load(bootstrap_servers, topic, rate=options.rate, partitions=partitions, encode=encode)
    stack.callback(load.abandon)
    return load


def _partitions(yours: UsersQuery) -> int:
    """The partitions of the input topic. Both topics must exist and be empty: whole topics are compared."""
    reader = new_reader(yours.bootstrap_servers)
    try:
        described = reader.list_topics(timeout=10).topics
        for topic in (yours.input_topic, yours.output_topic):
            if topic not in described:
                raise _not_fresh(topic, "does not exist")
            for start in beginnings(reader, [topic]):
                if reader.get_watermark_offsets(start, timeout=10)[1] > 0:
                    raise _not_fresh(topic, "already holds records, which would be counted")
        return len(described[yours.input_topic].partitions)
    finally:
        reader.close()


def _not_fresh(topic: str, why: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_TOPIC_NOT_FRESH",
        f"the topic '{topic}' {why}.",
        "name fresh topics, and give the script a fresh checkpoint; an embedded broker makes topics with "
        f"tailrace kafka start --topic {topic}:2",
    )
