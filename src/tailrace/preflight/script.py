"""A user's own script, run without starting its streams: every query in it is checked instead."""

from __future__ import annotations

import contextlib
import runpy
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tailrace._logged_session import start_with_log
from tailrace.errors import TailraceError
from tailrace.preflight.never_started import NeverStarted
from tailrace.preflight.starts import intercept
from tailrace.session import RealTimeBuilder, configure

NOT_THE_USERS = (
    str(Path(pyspark.__file__).parent),
    str(Path(__file__).parent.parent),
    sysconfig.get_path("stdlib"),
)


OnStart = Callable[[DataStreamWriter, str | None], None]


def run_without_starting(script: Path, arguments: list[str], on_start: OnStart, log: Path) -> None:
    """Run the script as `python script arguments…` would; each writer that it starts goes to `on_start` with its line.

    What the script prints goes to standard error, and what Spark prints to `log`.
    """

    def intercepted(writer: DataStreamWriter) -> NeverStarted:
        on_start(writer, _users_line(script.parent))
        return NeverStarted(name=None)

    with _as_main(script, arguments), _sessions_with_plugin(log), _lines_noted(script.parent), _nothing_awaited():
        intercept(intercepted)
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit:
            # A script may end itself; what it would have said with the exit code is about its streams.
            pass
        except TailraceError:
            raise
        except Exception as failure:
            raise TailraceError(
                "TAILRACE_SCRIPT_FAILED", f"{script} fails by itself: {_last_lines(failure)}", "see the trace above."
            ) from failure
        finally:
            intercept(None)


@contextlib.contextmanager
def _as_main(script: Path, arguments: list[str]) -> Iterator[None]:
    with (
        _replaced(sys, "argv", [str(script), *arguments]),
        _replaced(sys, "path", [str(script.absolute().parent), *sys.path]),
        contextlib.redirect_stdout(sys.stderr),
    ):
        yield


@contextlib.contextmanager
def _sessions_with_plugin(log: Path) -> Iterator[None]:
    """A script that was written for plain Spark is checked all the same."""
    real_time, plain = RealTimeBuilder.getOrCreate, SparkSession.Builder.getOrCreate

    def get_or_create(builder: SparkSession.Builder) -> SparkSession:
        ready = builder if isinstance(builder, RealTimeBuilder) else configure(builder)
        with (
            _replaced(RealTimeBuilder, "getOrCreate", real_time),
            _replaced(SparkSession.Builder, "getOrCreate", plain),
        ):
            running = SparkContext._active_spark_context is not None
            return ready.getOrCreate() if running else start_with_log(ready, log)

    with (
        _replaced(RealTimeBuilder, "getOrCreate", get_or_create),
        _replaced(SparkSession.Builder, "getOrCreate", get_or_create),
    ):
        yield


@contextlib.contextmanager
def _lines_noted(folder: Path) -> Iterator[None]:
    """Let every DataFrame know the line in which it was made; PySpark notes that for columns only."""
    make = ClassicDataFrame.__init__

    def init(self: ClassicDataFrame, jdf: Any, session: Any) -> None:
        make(self, jdf, session)
        if line := _users_line(folder):
            lines: Any = self.sparkSession._jvm.org.apache.spark.sql.tailrace.preflight.SourceLines  # type: ignore[union-attr]
            lines.mark(jdf, line)

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


def _last_lines(failure: Exception) -> str:
    traceback.print_exception(failure)
    return f"{type(failure).__name__}: {next(iter(str(failure).splitlines()), '')}"
