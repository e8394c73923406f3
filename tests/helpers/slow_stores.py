"""Stores whose commits take long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace import EmbeddedPostgres, EmbeddedRedis

COMMIT_S = 0.2

SLOW = """
CREATE FUNCTION {0}_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep({1}); RETURN NULL; END $$;
CREATE TRIGGER wait AFTER INSERT ON {0} FOR EACH STATEMENT EXECUTE FUNCTION {0}_wait()
"""


@contextmanager
def slow_commits(postgres: EmbeddedPostgres, table: str) -> Iterator[None]:
    """Each statement that writes to the table takes this much longer."""
    postgres.execute(SLOW.format(table, COMMIT_S))
    try:
        yield
    finally:
        postgres.execute(f"DROP TRIGGER wait ON {table}; DROP FUNCTION {table}_wait()")


@contextmanager
def paused_writes(redis: EmbeddedRedis) -> Iterator[None]:
    """Redis holds writes back, and lets them through for a moment every so often."""
    stop = threading.Event()

    def pause() -> None:
        while not stop.wait(COMMIT_S * 1.05):
            redis.execute("CLIENT", "PAUSE", int(COMMIT_S * 1000), "WRITE")

    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
