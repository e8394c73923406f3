"""Runs a user's script without starting its streams: every query in it is checked instead."""

from __future__ import annotations

import contextlib
import runpy
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._spark.logged_session import start_with_log
from tailrace._spark.plugin import is_loaded, jvm_object
from tailrace._spark.session_builder import RealTimeBuilder
from tailrace.check.facts import option, writer_options
from tailrace.check.start_hook import intercept
from tailrace.check.stub_query import StubQuery
from tailrace.errors import TailraceError

# Longer than a script needs to start its next query.
PATIENCE_S = 15.0
SOURCE_LINES_CLASS = "org.apache.spark.sql.tailrace.preflight.SourceLines"
NOT_THE_USERS = (
    str(Path(pyspark.__file__).parent),
    str(Path(__file__).parent.parent),
    sysconfig.get_path("stdlib"),
)


OnStart = Callable[[DataStreamWriter, str | None], Callable[[], None]]


def run_without_starting(
    script: Path, arguments: list[str], on_start: OnStart, log: Path, settings: Mapping[str, str]
) -> None:
    """Run the script as `python script arguments…` would; each writer that it starts goes to `on_start` with its line.

    `on_start` returns what to do when the script stops that query. What the script prints goes to standard error, and
    what Spark prints to `log`. `settings` replace the script's own, `spark.master` among them. The interceptor stays:
    no thread of the script may start a stream after all.
    """

    def intercepted(writer: DataStreamWriter) -> StubQuery:
        on_stop = on_start(writer, _users_line(script.parent))
        _wait_no_longer_than(PATIENCE_S)
        return StubQuery(option(writer_options(writer), "queryName"), on_stop)

    intercept(intercepted)
    with (
        _as_main(script, arguments),
        _sessions_with_plugin(log, settings),
        _lines_noted(script.parent),
        _nothing_awaited(),
        _alarm_ends_the_script(),
    ):
        try:
            runpy.run_path(str(script), run_name="__main__")
            _join_threads()
        except _WaitsForEver:
            # It has started its queries, and now waits for them or sleeps.
            pass
        except SystemExit as end:
            if end.code not in (None, 0):
                raise _failed(script, f"it exited with {end.code}") from None
        except TailraceError:
            raise
        except Exception as failure:
            traceback.print_exception(failure)
            reason = next(iter(str(failure).splitlines()), "")
            raise _failed(script, f"{type(failure).__name__}: {reason}") from None


def _failed(script: Path, why: str) -> TailraceError:
    fix = (
        "fix the script, or provide what it needs, such as an argument or an environment variable. Its output is above."
    )
    return TailraceError("TAILRACE_SCRIPT_FAILED", f"{script} failed: {why}", fix)


class _WaitsForEver(BaseException):
    """Raised in the script's main thread; no `except Exception` of the script's stops it."""


def _wait_no_longer_than(seconds: float) -> None:
    if threading.current_thread() is threading.main_thread():
        signal.setitimer(signal.ITIMER_REAL, seconds)


@contextlib.contextmanager
def _alarm_ends_the_script() -> Iterator[None]:
    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise _WaitsForEver

    before = signal.signal(signal.SIGALRM, give_up)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _join_threads() -> None:
    """Queries are often started in threads of their own."""
    _wait_no_longer_than(PATIENCE_S)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


@contextlib.contextmanager
def _as_main(script: Path, arguments: list[str]) -> Iterator[None]:
    with (
        _replaced(sys, "argv", [str(script), *arguments]),
        _replaced(sys, "path", [str(script.absolute().parent), *sys.path]),
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield


@contextlib.contextmanager
def _sessions_with_plugin(log: Path, settings: Mapping[str, str]) -> Iterator[None]:
    """A script that was written for plain Spark is checked all the same."""
    real_time, plain = RealTimeBuilder.getOrCreate, SparkSession.Builder.getOrCreate

    def get_or_create(builder: SparkSession.Builder) -> SparkSession:
        for key, value in settings.items():
            builder = builder.config(key, value)
        ready = builder if isinstance(builder, RealTimeBuilder) else RealTimeBuilder.completing(builder)
        with (
            _replaced(RealTimeBuilder, "getOrCreate", real_time),
            _replaced(SparkSession.Builder, "getOrCreate", plain),
        ):
            running = SparkContext._active_spark_context is not None
            return ready.getOrCreate() if running else start_with_log(ready, log)

    with (
        _replaced(RealTimeBuilder, "getOrCreate", get_or_create),
        _replaced(SparkSession.Builder, "getOrCreate", get_or_create),
        _replaced(SparkSession.Builder, "create", get_or_create),
    ):
        yield


@contextlib.contextmanager
def _lines_noted(folder: Path) -> Iterator[None]:
    """Let every DataFrame know the line in which it was made; PySpark notes that for columns only."""
    make = ClassicDataFrame.__init__

    def init(self: ClassicDataFrame, jdf: Any, session: Any) -> None:
        make(self, jdf, session)
        if is_loaded(self.sparkSession.sparkContext) and (line := _users_line(folder)):
            jvm_object(self.sparkSession.sparkContext, SOURCE_LINES_CLASS).mark(jdf, line)

    with _replaced(ClassicDataFrame, "__init__", init):
        yield


@contextlib.contextmanager
def _nothing_awaited() -> Iterator[None]:
    """There is no query whose end a script could wait for."""

    def at_once(_manager: StreamingQueryManager, timeout: int | None = None) -> bool:
        return True

    with _replaced(StreamingQueryManager, "awaitAnyTermination", at_once):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _users_line(folder: Path) -> str | None:
    """The innermost line that is neither PySpark's nor Tailrace's nor Python's own, as `file:line`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if not str(path).startswith(("<", *NOT_THE_USERS)):
            own = folder.absolute()
            return f"{path.relative_to(own) if path.is_relative_to(own) else path}:{frame.f_lineno}"
        frame = frame.f_back
    return None
