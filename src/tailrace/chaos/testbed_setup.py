"""Sets up broker, proxy and driver once for a run, and new topics, load and queries for each of its pieces."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tailrace._kafka.cluster import Servers
from tailrace._process.ports import HOST
from tailrace._spark import maven
from tailrace.chaos._events import Event
from tailrace.chaos._settings import DriverSettings, checkpoint_of
from tailrace.chaos.driver import Driver
from tailrace.chaos.faults import MOST_PARTITIONS
from tailrace.chaos.load import Encode, LoadGenerator
from tailrace.chaos.options import ChaosOptions, UsersQuery
from tailrace.chaos.output_watcher import LiveReader, OutputWatcher, TopicReader, Watched
from tailrace.chaos.own_queries import OwnQueries
from tailrace.chaos.pieces import SHORT_EPOCH_S
from tailrace.chaos.proxy import TcpProxy
from tailrace.chaos.records import record
from tailrace.chaos.stores import Store, StoreReader, open_store, resolve_client
from tailrace.chaos.testbed import DriverVariant, Testbed
from tailrace.chaos.topics import beginnings, compact, new_reader
from tailrace.chaos.workloads import STORES, WORKLOADS, QueryName
from tailrace.errors import TailraceError
from tailrace.kafka import EmbeddedKafka, delete_topics, require_broker

PARTITIONS = 2
MOST_SHUFFLE_PARTITIONS = 3
EXECUTORS = 2


@dataclass
class Bench:
    """What the pieces of a run share: a broker behind a proxy, and a driver for as long as no fault needs a new one."""

    folder: Path
    broker: EmbeddedKafka
    proxy: TcpProxy
    driver: Driver
    variant: DriverVariant
    events: list[Event] = field(default_factory=list)


def set_up_bench(pieces: list[ChaosOptions], log: Path, stack: ExitStack) -> Bench:
    maven.resolve(maven.KAFKA_CONNECTOR)
    folder = Path(tempfile.mkdtemp(prefix="tailrace-chaos-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    proxy = stack.enter_context(TcpProxy())
    broker = stack.enter_context(EmbeddedKafka(proxy_port=proxy.port))
    proxy.target_port = broker.proxied_port
    variant, slots = DriverVariant(), max(map(_slots, pieces))
    stores = tuple(sorted({sink for piece in pieces for sink in piece.sinks if sink in STORES}))
    for store in stores:
        resolve_client(store)

    def command() -> list[str]:
        settings = DriverSettings(
            # Twice as many slots as needed: a query that starts again may find its old tasks still at work.
            master=f"local-cluster[{EXECUTORS},{slots},1024]" if variant.on_cluster else f"local[{EXECUTORS * slots}]",
            bootstrap_servers=f"{HOST}:{proxy.port}",
            folder=str(folder),
            shuffle_partitions=variant.shuffle_partitions,
            stores=stores,
        )
        return ["tailrace.chaos._app", settings.to_json()]

    events: list[Event] = []
    driver = Driver(command, log, events.append)
    stack.callback(driver.kill)
    return Bench(folder, broker, proxy, driver, variant, events)


def _slots(piece: ChaosOptions) -> int:
    workloads = [WORKLOADS[QueryName.parse(query).workload] for query in piece.queries]
    return sum(w.readings * MOST_PARTITIONS + w.shuffles * MOST_SHUFFLE_PARTITIONS for w in workloads) + 2


def set_up_piece(bench: Bench, piece: ChaosOptions, number: int, log: Path, stack: ExitStack) -> Testbed:
    """Topics, stores, checkpoints, load and queries of a piece. They end with it; broker and driver stay."""
    servers, input_topic = bench.broker.bootstrap_servers, f"input-{number}"
    outputs = {query: _topics(QueryName.parse(query), number) for query in piece.queries}
    topics = sorted({t for query, names in outputs.items() if _sink(query) not in STORES for t in names})
    outside = _set_up_stores(outputs, stack)
    bench.broker.create_topics([input_topic, *topics], partitions=PARTITIONS)
    stack.callback(delete_topics, servers, [input_topic, *topics])
    compact(
        servers,
        {topics[0] for query, topics in outputs.items() if WORKLOADS[QueryName.parse(query).workload].compacted},
    )
    if bench.variant != DriverVariant():
        # An earlier piece left another cluster or another setting.
        bench.driver.kill()
        bench.variant.on_cluster, bench.variant.shuffle_partitions = False, DriverVariant().shuffle_partitions
    stack.callback(shutil.rmtree, bench.folder / "checkpoints", ignore_errors=True)
    for query in piece.queries:
        checkpoint_of(bench.folder, query).mkdir(parents=True)
    epoch_s = piece.epoch_s or SHORT_EPOCH_S
    own = OwnQueries(bench.folder, input_topic, outputs, epoch_s=epoch_s, sink_options=outside.options)

    def encode(number: int) -> tuple[str, bytes]:
        made = record(number)
        return made.key, made.to_json()

    load = _load(servers, input_topic, PARTITIONS, encode, piece, stack)
    readers: list[LiveReader] = [StoreReader(store) for store in outside.stores.values()]
    watcher = OutputWatcher(
        [*readers, TopicReader(servers, topics)] if topics else readers,
        [_watched(QueryName.parse(query), topic) for query, topics in outputs.items() for topic in topics],
        number_field="number",
        partition_of=load.partition_of,
    )
    stack.callback(watcher.close)
    bench.driver.log = log
    testbed = Testbed(
        servers,
        piece.queries,
        bench.driver,
        load,
        watcher,
        outputs,
        broker=bench.broker,
        proxy=bench.proxy,
        checkpoints=bench.folder / "checkpoints",
        variant=bench.variant,
        own=own,
        events=bench.events,
        stores=outside.stores,
        store_proxies=outside.proxies,
    )
    own.want()
    return testbed


@dataclass
class StoresOfPiece:
    """The stores that the queries of a piece write to, each behind a proxy."""

    stores: dict[str, Store] = field(default_factory=dict)
    proxies: list[TcpProxy] = field(default_factory=list)
    options: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of the sink, by output."""


def _set_up_stores(outputs: dict[str, tuple[str, ...]], stack: ExitStack) -> StoresOfPiece:
    made = StoresOfPiece()
    for sink in sorted({_sink(query) for query in outputs} & set(STORES)):
        store = made.stores[sink] = open_store(sink, stack)
        proxy = stack.enter_context(TcpProxy())
        proxy.target_port = store.port
        made.proxies.append(proxy)
        of_store = {query: names for query, names in outputs.items() if _sink(query) == sink}
        keyed = {
            name: WORKLOADS[QueryName.parse(query).workload].keyed
            for query, names in of_store.items()
            for name in names
        }
        for name, is_keyed in keyed.items():
            store.create(name, keyed=is_keyed)
            made.options[name] = store.options(name, keyed=is_keyed, port=proxy.port)
    return made


def _sink(query: str) -> str:
    return QueryName.parse(query).sink


def _topics(name: QueryName, number: int) -> tuple[str, ...]:
    """A query whose topic can be changed has two."""
    first = f"{name.topic}-{number}"
    return (first, f"{first}-other") if WORKLOADS[name.workload].versions > 1 else (first,)


def _watched(name: QueryName, topic: str) -> Watched:
    return Watched(str(name), topic, WORKLOADS[name.workload].row_field, name.part)


def set_up_users_query(yours: UsersQuery, options: ChaosOptions, log: Path, stack: ExitStack) -> Testbed:
    """The user's script, between the user's topics."""
    yours.require_readable_template()
    require_broker(yours.cluster)
    partitions = _partitions(yours)
    load = _load(yours.cluster, yours.input_topic, partitions, yours.encode, options, stack)
    watcher = OutputWatcher(
        [TopicReader(yours.cluster, [yours.output_topic])],
        [Watched(query, yours.output_topic, yours.id_field) for query in options.queries],
        number_field=yours.id_field,
        partition_of=load.partition_of,
    )
    stack.callback(watcher.close)
    command = ["tailrace.chaos._script", str(yours.script), *yours.arguments]
    events: list[Event] = []
    driver = Driver(lambda: command, log, events.append)
    stack.callback(driver.kill)
    outputs: dict[str, tuple[str, ...]] = dict.fromkeys(options.queries, (yours.output_topic,))
    return Testbed(yours.cluster, options.queries, driver, load, watcher, outputs, events=events)


def _load(
    bootstrap_servers: Servers, topic: str, partitions: int, encode: Encode, options: ChaosOptions, stack: ExitStack
) -> LoadGenerator:
    load = LoadGenerator(bootstrap_servers, topic, rate=options.rate, partitions=partitions, encode=encode)
    stack.callback(load.abandon)
    return load


def _partitions(yours: UsersQuery) -> int:
    """The partitions of the input topic. Both topics must exist and be empty: whole topics are compared."""
    reader = new_reader(yours.cluster)
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
