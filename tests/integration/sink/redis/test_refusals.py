"""`tailrace-redis`: what is wrong is said before the start, and bad rows go their way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import tailrace
from tailrace import EmbeddedRedis, TailraceError
from tailrace._process.ports import free_port
from tailrace.contract.findings import Severity
from tests.helpers.pipeline import Pipeline
from tests.helpers.redis import EPOCH, SOON_S, Keys
from tests.helpers.topics import all_messages, new_topic
from tests.helpers.waiting import until


def plain(pipeline: Pipeline) -> DataFrame:
    return pipeline.rows().select("id", "key")


@pytest.fixture(scope="module")
def guest(redis: EmbeddedRedis) -> Iterator[None]:
    """Users who may connect, and not much more."""
    redis.execute("ACL", "SETUSER", "guest", "on", ">guest", "~*", "+@all", "-@scripting")
    redis.execute("ACL", "SETUSER", "elsewhere", "on", ">guest", "~tailrace:*", "+@all")
    redis.execute("ACL", "SETUSER", "mute", "on", ">guest", "~*", "+@all", "-info")
    yield
    redis.execute("ACL", "DELUSER", "guest", "elsewhere", "mute")


def findings(keys: Keys, pipeline: Pipeline, query: DataFrame, **options: str) -> set[str]:
    """The blocking codes of the check, which are also those that `start()` raises."""
    writer = keys.writer(pipeline, query, **options).trigger(realTime=EPOCH)  # type: ignore[call-overload]
    blocking = {found.code for found in tailrace.check(writer).of(Severity.BLOCKING)}
    with pytest.raises(TailraceError) as raised:
        writer.start()
    assert all(code in str(raised.value) for code in blocking)
    return blocking


BAD = "TAILRACE_BAD_SINK_OPTION"
RIGHTS = "TAILRACE_SINK_RIGHTS_MISSING"
MISSING = "TAILRACE_SINK_COLUMN_MISSING"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"url": "redis://127.0.0.1:1"}, "TAILRACE_REDIS_UNREACHABLE"),
        ({"password": "wrong"}, "TAILRACE_REDIS_REFUSED"),
        ({"user": "guest", "password": "guest"}, RIGHTS),
        ({"user": "elsewhere", "password": "guest"}, RIGHTS),
        ({"user": "mute", "password": "guest"}, RIGHTS),
        ({"url": "http://127.0.0.1:6379"}, BAD),
        ({"url": "redis://user:secret@127.0.0.1:6379"}, BAD),
        ({"url": "redis://127.0.0.1:6379/first"}, BAD),
        ({"url": ""}, BAD),
        ({"structure": "list"}, BAD),
        ({"structure": ""}, BAD),
        ({"key": ""}, BAD),
        ({"key": "user:{id"}, BAD),
        ({"member": "id"}, BAD),
        ({"ttl": "soon"}, BAD),
        ({"batchsize": "none"}, BAD),
        ({"passwordFile": "/nowhere/at/all"}, BAD),
        ({"caFile": "/nowhere/at/all"}, BAD),
        ({"key": "{number}"}, MISSING),
        ({"key": "{id}:{key}"}, MISSING),
        ({"structure": "string", "value": "number"}, MISSING),
        ({"structure": "sorted-set", "key": "board", "member": "key"}, BAD),
        ({"structure": "sorted-set", "key": "board", "member": "id", "score": "key"}, "TAILRACE_SINK_COLUMN_TYPE"),
        ({"structure": "stream", "key": "events", "maxLen": "0"}, BAD),
    ],
)
@pytest.mark.usefixtures("guest")
def test_options_that_do_not_work_are_refused(
    pipeline: Pipeline, redis: EmbeddedRedis, options: dict[str, str], code: str
) -> None:
    assert findings(Keys(redis, "hash"), pipeline, plain(pipeline), **options) == {code}


def test_columns_without_a_place_are_refused(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    board = Keys(redis, "sorted-set", "board", member="key", score="id")
    assert findings(board, pipeline, plain(pipeline).withColumn("more", F.lit(1))) == {MISSING}
    nested = plain(pipeline).withColumn("id", F.struct("id"))
    assert findings(Keys(redis, "hash"), pipeline, nested) == {"TAILRACE_SINK_COLUMN_TYPE"}


def test_matches_of_two_streams_are_refused(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    matches = plain(pipeline).join(pipeline.rows().select("id"), "id")
    assert "TAILRACE_NO_ROW_IDENTITY" in findings(Keys(redis, "hash"), pipeline, matches)


def test_servers_that_cannot_keep_the_promise_are_refused(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    evicting = {"maxmemory": "100mb", "maxmemory-policy": "allkeys-lru"}
    replica = {"replicaof": f"127.0.0.1 {redis.port}"}
    cases = (
        (evicting, "TAILRACE_REDIS_EVICTS"),
        (replica, RIGHTS),
        # Its second port would be the first one plus 10,000, which can be too high.
        ({"cluster-enabled": "yes", "cluster-port": str(free_port())}, "TAILRACE_REDIS_CLUSTER"),
    )
    for settings, code in cases:
        with EmbeddedRedis(settings=settings) as server:
            assert findings(Keys(server, "hash"), pipeline, plain(pipeline)) == {code}


def test_what_fits_is_passed_with_its_guarantee(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    with EmbeddedRedis(settings={"appendonly": "no"}) as forgetful:
        for server, warns in ((redis, False), (forgetful, True)):
            keys = Keys(server, "hash")
            verdict = tailrace.check(keys.writer(pipeline, plain(pipeline)).trigger(realTime=EPOCH))  # type: ignore[call-overload]
            assert not verdict.blocked
            assert any(one.code == "TAILRACE_GUARANTEE" and "Exactly once" in one.detail for one in verdict.findings)
            warned = {one.code for one in verdict.of(Severity.WARNING)}
            assert ("TAILRACE_REDIS_NOT_DURABLE" in warned) == warns
            assert keys.names() == [], "the check has written"


@pytest.mark.parametrize("policy", ["dead-letter", "drop"])
def test_rejected_rows_leave_their_batch_alone(pipeline: Pipeline, redis: EmbeddedRedis, policy: str) -> None:
    keys = Keys(redis, "hash")
    letters = new_topic(pipeline.servers, "dead")
    taken = {7, 13, 14}
    for number in taken:
        redis.execute("SET", keys.key(number), "taken")
    # One has no key at all.
    rows = plain(pipeline).withColumn("id", F.when(F.col("id") != 20, F.col("id")))
    pipeline.send(range(40))
    with keys.running(pipeline, rows, onError=policy, deadLetterTopic=letters):
        until(lambda: len(keys.names()) == 39, "the good rows", within_s=SOON_S)
        if policy == "dead-letter":
            until(lambda: len(all_messages(pipeline.servers, letters)) == 4, "the letters", within_s=SOON_S)
    assert {int(name) for name in keys.names()} == set(range(40)) - {20}
    assert all(redis.execute("GET", keys.key(number)) == "taken" for number in taken)
    assert keys.hash(8) == {"key": "k8"}


def test_a_rejected_row_is_named_and_comes_again(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    keys = Keys(redis, "hash")
    redis.execute("SET", keys.key(7), "taken")
    started = keys.started(pipeline, plain(pipeline))
    pipeline.send(range(6, 8))
    # No other row follows.
    text = str(until(started.exception, "it fails", within_s=SOON_S))
    assert "[TAILRACE_ROW_REJECTED]" in text
    assert "WRONGTYPE" in text
    assert pipeline.input in text
    redis.execute("DEL", keys.key(7))
    with keys.running(pipeline, plain(pipeline)):
        until(lambda: keys.hash(7) == {"key": "k7"}, "the row", within_s=SOON_S)


def test_a_full_server_is_waited_for_with_a_bound(pipeline: Pipeline) -> None:
    with EmbeddedRedis() as server:
        events = Keys(server, "stream", "events")
        with events.running(pipeline, pipeline.rows().select("id")):
            pipeline.send(range(10))
            events.wait_for(10, "events")
            server.execute("CONFIG", "SET", "maxmemory", "1")
            pipeline.send(range(10, 20))
            server.execute("CONFIG", "SET", "maxmemory", "0")
            events.wait_for(20, "events")
        assert events.ids("events") == list(range(20))
        query = events.started(pipeline, pipeline.rows().select("id"), retryTimeout="1s")
        pipeline.send(range(20, 30))
        events.wait_for(30, "events")
        server.execute("CONFIG", "SET", "maxmemory", "1")
        pipeline.send(range(30, 40))
        text = str(until(query.exception, "it gives up", within_s=SOON_S))
        assert "[TAILRACE_REDIS_UNREACHABLE]" in text
        assert "OOM" in text


def test_rights_that_are_taken_away_fail_the_query(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    redis.execute("ACL", "SETUSER", "temporary", "on", ">guest", "~*", "+@all")
    events = Keys(redis, "stream", "events")
    query = events.started(pipeline, pipeline.rows().select("id"), user="temporary", password="guest")
    pipeline.send(range(10))
    events.wait_for(10, "events")
    redis.execute("ACL", "SETUSER", "temporary", "-xadd")
    pipeline.send(range(10, 20))
    text = str(until(query.exception, "it fails", within_s=SOON_S))
    assert "[TAILRACE_REDIS_REFUSED]" in text
    redis.execute("ACL", "SETUSER", "temporary", "+xadd")
    with events.running(pipeline, pipeline.rows().select("id")):
        events.wait_for(20, "events")
    assert events.ids("events") == list(range(20))


def test_a_checkpoint_that_is_too_old_is_refused(pipeline: Pipeline, redis: EmbeddedRedis) -> None:
    events = Keys(redis, "stream", "events")
    with events.running(pipeline, pipeline.rows().select("id")) as query:
        pipeline.send(range(1))
        events.wait_for(1, "events")
    # As if a newer copy of the checkpoint had got much further.
    redis.execute("HSET", f"tailrace:{{{query.id}}}:run", "keptFrom", 1000)
    again = events.started(pipeline, pipeline.rows().select("id"))
    assert "[TAILRACE_CHECKPOINT_TOO_OLD]" in str(until(again.exception, "it fails", within_s=SOON_S))


def test_no_secret_is_shown(pipeline: Pipeline, redis: EmbeddedRedis, capfd: pytest.CaptureFixture[str]) -> None:
    keys = Keys(redis, "hash")
    # Where the driver logs to: pytest gave it a file.
    log = Path(f"/proc/{pipeline.spark.sparkContext._gateway.proc.pid}/fd/2")  # type: ignore[union-attr]
    logged_before = log.stat().st_size
    secret = str(redis.password)
    options = {"password": secret, "passwordFile": ""}
    pipeline.spark.sparkContext.setLogLevel("INFO")
    try:
        with keys.running(pipeline, plain(pipeline), **options) as query:
            pipeline.send(range(3))
            until(lambda: len(keys.names()) == 3, "the rows", within_s=SOON_S)
            query.explain(extended=True)
            shown = [str(query.lastProgress), query._jsq.toString()]
            verdict = tailrace.check(keys.writer(pipeline, plain(pipeline), **options))
            shown += [repr(verdict), str(verdict), repr(verdict.findings)]
            shown += [file.read_text(errors="replace") for file in pipeline.checkpoint.rglob("*") if file.is_file()]
    finally:
        pipeline.spark.sparkContext.setLogLevel("OFF")
    logged = log.read_bytes()[logged_before:].decode(errors="replace")
    assert str(query.id) in logged, "nothing was logged"
    plan = capfd.readouterr().out
    assert "Logical Plan" in plan
    assert [text for text in [*shown, plan, logged] if secret in text] == []
