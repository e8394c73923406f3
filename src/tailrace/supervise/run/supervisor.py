"""Starts the application, watches it, starts it again or gives up, and drains it in the end."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tailrace.contract.run_folder import DashboardReport
from tailrace.contract.run_status import RestartCounts, State
from tailrace.errors import DashboardUnreachableError, DrainError, NothingToDrainError, TailraceError
from tailrace.supervise.remote import drain_at
from tailrace.supervise.run import incident as incidents
from tailrace.supervise.run.application_health import ApplicationHealth, FailedQuery
from tailrace.supervise.run.exit_codes import ExitCode, after_signal
from tailrace.supervise.run.failures import Cure, Failure, diagnose
from tailrace.supervise.run.output import RotatingLog
from tailrace.supervise.run.process import ApplicationProcess
from tailrace.supervise.run.restarts import Restarts
from tailrace.supervise.run.status import Status

LOOKS_EVERY_S = 1.0
# After its queries were drained: a script has little left to do.
SCRIPT_ENDS_WITHIN_S = 15.0
# The application answers when a drain takes too long; if even that does not come, it hangs.
ANSWER_COMES_WITHIN_S = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True)
class RunOptions:
    """What is to be run, and how."""

    script: str
    command: list[str]
    environment: Callable[[Path], dict[str, str]]
    log: Path
    restarts: Restarts
    drain_timeout_s: float = 60.0
    query_grace_s: float = 30.0
    """How long a failed query may stay down before the application is restarted."""
    incidents: Path | None = None
    show_spark_log: bool = False


@dataclass(frozen=True)
class _DrainEnded:
    failure: TailraceError | None


class Supervisor:
    """Runs in the main thread: signals, the application's end and a drain's end come to it through one queue."""

    def __init__(self, options: RunOptions, status: Status, say: Callable[[str], None]) -> None:
        self._options = options
        self._status = status
        self._say = say
        self._restarts = options.restarts
        # Its put may interrupt its own get, as a signal's handler does.
        self._events: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._last_failure: Failure | None = None
        self._total = 0

    def run(self) -> int:
        """Until the application has ended for good; the exit code says how."""
        log = RotatingLog(self._options.log)
        try:
            with self._signals_as_events():
                code = None
                while code is None:
                    code = self._run_once(log)
                return code
        finally:
            self._status.enter(State.ENDED)
            log.close()

    def _run_once(self, log: RotatingLog) -> int | None:
        """None if it is to be started again."""
        self._status.enter(State.STARTING)
        self._report_restarts()
        application = ApplicationProcess(
            self._options.command,
            self._options.environment,
            log,
            show_spark_log=self._options.show_spark_log,
            events=self._events,
        )
        health_check = ApplicationHealth(application)
        try:
            received = self._follow(application, health_check)
            if received is not None:
                return self._drain(application, health_check, received)
            failed = health_check.failed_query()
            if application.exit_code == 0 and failed is None:
                self._say("The application has ended.")
                return ExitCode.OK
            return self._after_failure(application, health_check, failed)
        finally:
            application.end(within_s=0)
            application.delete_folder()

    def _follow(self, application: ApplicationProcess, health_check: ApplicationHealth) -> signal.Signals | None:
        """Watch it until it ends or is down. Returns the signal if one asks the application to end."""
        while True:
            event = self._next_event(LOOKS_EVERY_S)
            if isinstance(event, signal.Signals):
                return event
            if event is application:
                return None
            if event is None and (health := health_check.poll()) is not None:
                self._status.enter(State.RUNNING if health_check.has_queries else State.STARTING)
                self._status.set_queries(health)
                self._restarts.healthy_for(health_check.healthy_for_s)
                self._report_restarts()
                if health_check.failed_for_s > self._options.query_grace_s:
                    self._say("A query is down and the application has not started it again.")
                    self._drain_healthy_queries(health_check)
                    return None

    def _after_failure(
        self, application: ApplicationProcess, health_check: ApplicationHealth, failed: FailedQuery | None
    ) -> int | None:
        """Report it, and wait for the time of the next start if there is to be one."""
        failure = _diagnosis(application, failed)
        again = failure.has_record_of(self._last_failure)
        self._last_failure = failure
        if again:
            failure = replace(failure, cure=Cure.NONE)
            return self._give_up(application, health_check, failure, "the same record has failed twice in a row")
        if failure.cure == Cure.NONE:
            return self._give_up(application, health_check, failure, "a restart cannot cure it")
        delay_s = self._restarts.next_delay_s()
        if delay_s is None:
            next_step = f"the run ends: the limit of {self._restarts.limit} restarts in a row is reached"
            self._report(application, health_check, failure, next_step)
            return ExitCode.RESTART_LIMIT
        self._total += 1
        nth = f"restart {self._restarts.used} of {self._restarts.limit}"
        self._report(application, health_check, failure, f"started again after {delay_s:.1f} s ({nth})")
        application.end()
        return self._wait(delay_s)

    def _give_up(
        self, application: ApplicationProcess, health_check: ApplicationHealth, failure: Failure, why: str
    ) -> int:
        self._report(application, health_check, failure, f"the run ends: {why}")
        return ExitCode.NOT_CURABLE

    def _wait(self, delay_s: float) -> int | None:
        self._status.enter(State.WAITING)
        self._report_restarts()
        deadline = time.monotonic() + delay_s
        while (left_s := deadline - time.monotonic()) > 0:
            event = self._next_event(left_s)
            if isinstance(event, signal.Signals):
                self._say("Stopped while no application was running.")
                return after_signal(event)
        return None

    def _drain(self, application: ApplicationProcess, health_check: ApplicationHealth, received: signal.Signals) -> int:
        self._status.enter(State.DRAINING)
        address = health_check.address
        if address is None:
            self._say(f"{received.name}: no query was running yet; the application is ended.")
            application.end()
            return ExitCode.OK
        limit_s = self._options.drain_timeout_s
        self._say(f"{received.name}: draining, {limit_s:g} s at most; a second signal stops it at once.")
        self._begin_drain(address)
        deadline = time.monotonic() + self._options.drain_timeout_s + ANSWER_COMES_WITHIN_S
        problem: TailraceError | None = None
        while (left_s := deadline - time.monotonic()) > 0:
            event = self._next_event(left_s)
            if isinstance(event, signal.Signals):
                self._say("Stopped at once: the next run replays the open epoch.")
                return after_signal(event)
            if isinstance(event, _DrainEnded):
                problem = event.failure
                break
            if event is application:
                # The script may be gone before its server has answered.
                break
        else:
            problem = _no_answer(self._options.drain_timeout_s)
        return self._after_drain(application, health_check, problem)

    def _after_drain(
        self, application: ApplicationProcess, health_check: ApplicationHealth, problem: TailraceError | None
    ) -> int:
        if isinstance(problem, NothingToDrainError):
            self._say("No query runs in Real-Time Mode; the application is ended.")
            application.end()
            return ExitCode.OK
        if problem is None or isinstance(problem, DashboardUnreachableError):
            ended = application.ends_within(SCRIPT_ENDS_WITHIN_S)
            failed = health_check.failed_query() if ended else None
            if problem is None or (ended and application.exit_code == 0 and failed is None):
                application.end()
                self._say("Drained: all that was read is committed.")
                return ExitCode.OK
        assert problem is not None
        failure = Failure(problem.code, problem.problem, problem.fix, Cure.RESTART)
        self._report(application, health_check, failure, "the run ends: the next one replays what was not committed")
        application.end()
        return ExitCode.NOT_DRAINED

    def _begin_drain(self, address: DashboardReport) -> None:
        def drain() -> None:
            try:
                drain_at(address.url, None, self._options.drain_timeout_s, address.token)
                self._events.put(_DrainEnded(None))
            except TailraceError as failure:
                self._events.put(_DrainEnded(failure))

        threading.Thread(target=drain, daemon=True).start()

    def _drain_healthy_queries(self, health_check: ApplicationHealth) -> None:
        """Healthy queries need not replay anything because another one has failed."""
        address = health_check.address
        if address is not None:
            with contextlib.suppress(TailraceError):
                drain_at(address.url, None, self._options.drain_timeout_s, address.token)

    def _report(
        self, application: ApplicationProcess, health_check: ApplicationHealth, failure: Failure, next_step: str
    ) -> None:
        found = incidents.Incident(
            script=self._options.script,
            began_at=application.began_at,
            ended_at=time.time(),
            exit_code=application.exit_code,
            failure=failure,
            replays=health_check.replays(),
            next_step=next_step,
            command=self._options.command,
            log=str(self._options.log),
            log_end=application.log_end,
        )
        summary = found.summary()
        self._status.set_incident(summary)
        where = f" at {'; '.join(map(str, failure.records))}" if failure.records else ""
        self._say(f"[{failure.code}] {summary.problem}{where}")
        self._say(f"Fix: {failure.fix}")
        try:
            report = incidents.write(found, self._options.incidents)
            self._say(f"Next: {next_step}. Incident report: {report}")
        except TailraceError as problem:
            self._say(f"Next: {next_step}. No incident report: {problem.problem}")

    def _report_restarts(self) -> None:
        self._status.set_restarts(RestartCounts(self._restarts.used, self._restarts.limit, self._total))

    def _next_event(self, within_s: float) -> object:
        try:
            return self._events.get(timeout=within_s)
        except queue.Empty:
            return None

    @contextmanager
    def _signals_as_events(self) -> Iterator[None]:
        def note(number: int, _frame: object) -> None:
            self._events.put(signal.Signals(number))

        # nohup has it ignored, and means it.
        handled = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, note) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _diagnosis(application: ApplicationProcess, failed: FailedQuery | None) -> Failure:
    """The script's own error; if it is still running or exited by itself, its query's error."""
    exit_code = application.exit_code or 0
    failure = diagnose(application.final_error, exit_code)
    says_nothing = exit_code == 0 or (failure.query is None and failure.code == "UNKNOWN")
    if failed is None or not says_nothing:
        return failure
    return replace(diagnose(f"[STREAM_FAILED] {failed.error}", 0), query=failed.name)


def _no_answer(timeout_s: float) -> DrainError:
    return DrainError(
        "TAILRACE_DRAIN_TIMEOUT",
        f"the application has not answered within {timeout_s:g} s.",
        "allow more time with --drain-timeout; its log may show what it waits for.",
    )
