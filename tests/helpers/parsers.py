"""Every parser on the Python side that reads what others wrote, and texts to try it with.

A parser may refuse a text with an error of ours, or with those that its callers handle. Anything else is a bug, and so
is a text that takes long.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import tempfile
import urllib.parse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer
import typer.main
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tailrace import TailraceError
from tailrace._process import dashboards
from tailrace._process.arguments import require_name, require_seconds
from tailrace._process.console import visible_controls
from tailrace._process.host_guard import HostGuard
from tailrace._process.http_client import dashboard_url
from tailrace._process.paths import state_folder
from tailrace._process.redaction import LineRedaction, hide_in_command, hide_in_text
from tailrace._spark.user_conf import _from_properties, conf_of_arguments
from tailrace.cli.main import app
from tailrace.contract.codec import from_json, to_json
from tailrace.contract.drains import DrainAnswer, Drained, DrainRefusal, DrainRequest
from tailrace.contract.live_figures import LiveFiguresMessage
from tailrace.contract.run_folder import DashboardReport, ExitReport, FailureReport, StartedQueries
from tailrace.contract.snapshot import Snapshot
from tailrace.dashboard.control import Control
from tailrace.dashboard.routes import routes
from tailrace.dashboard.server import Guard
from tailrace.dashboard.top import _require_figures, picture
from tailrace.supervise.run import incident as incidents
from tailrace.supervise.run.arguments import refuse_what_cannot_be_supervised, take_apart
from tailrace.supervise.run.failures import diagnose
from tailrace.supervise.run.incident import Incident
from tailrace.supervise.run.output import Copy, RotatingLog
from tailrace.supervise.run.replay import replay_of
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query

TOKEN = "the-token"
# Of the click that typer brings, or of the installed one.
_USAGE_ERROR = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


@dataclass(frozen=True)
class Parser:
    call: Callable[[Any], object]
    inputs: SearchStrategy[Any]
    refuses_with: tuple[type[Exception], ...] = ()
    """What its callers handle, beside errors of ours."""

    def accepts_or_refuses(self, value: Any) -> None:
        with contextlib.suppress(TailraceError, *self.refuses_with):
            self.call(value)


# Texts

_PIECES = [
    "password",
    "token",
    "=",
    ":",
    "@",
    "://",
    '"',
    "'",
    "\\",
    "\n",
    "\r",
    "\x1b[2J",
    "\x00",
    " ",
    "-",
    "--",
    "Bearer ",
    "eyJ",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "[TAILRACE_X] ",
    "\nFix: ",
    "Traceback (most recent call last):\n",
    "[",
    "]",
    "topic 'a', partition ",
    ", offset ",
    "999999999999999999999999999999",
    "[PYTHON_EXCEPTION]",
    "Query a [id = 1, runId = 2]",
    "\ud800",
    "é",
    "{}",
    "\n=== Streaming Query",
    "[STREAM_FAILED] ",
    "ValueError: x",
    "jaas",
    " -> ",
    "\u202e",
    "%00",
    "../",
    "localhost",
    "1e999",
]
texts = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(_PIECES), max_size=25).map("".join))
words = st.lists(
    st.one_of(
        st.sampled_from(
            ["--conf", "-c", "--master", "--deploy-mode", "cluster", "--remote", "a.py", "--", "-", "--timeout", "nan",
             "--query", "", "--json", "-1", "--properties-file", "\x00", "--conf=a.token=b", "drain", "top", "size"]
        ),
        texts,
    ),
    max_size=8,
)  # fmt: skip
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.just(10**400)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)
json_texts = st.one_of(
    values.map(json.dumps), texts, st.sampled_from(["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "NaN", '"\\ud800"'])
)


def changed(example: Any) -> SearchStrategy[str]:
    """JSON that is nearly right: one value, anywhere in it, is another one, or is missing."""
    places = list(_places(example))

    def change(place: tuple[Any, ...], value: Any, gone: bool) -> str:
        copy = json.loads(json.dumps(example))
        inner = copy
        for key in place[:-1]:
            inner = inner[key]
        if gone:
            del inner[place[-1]]
        else:
            inner[place[-1]] = value
        return json.dumps(copy)

    return st.builds(change, st.sampled_from(places), values, st.booleans())


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from _places(one, (*path, key))


# Parsers

_FOLDER = Path(tempfile.mkdtemp(prefix="tailrace-fuzz-"))
_SNAPSHOT = json.loads(to_json(SyntheticMonitor(make_query("fraud", partitions=1)).snapshot()))
_REPORTS = (DashboardReport, ExitReport, FailureReport, StartedQueries, DrainAnswer, DrainRequest, DrainRefusal)
_NOTE = {"url": "http://127.0.0.1:1", "application": "a", "pid": 1, "token": ""}
_ENDED = {
    "queries": [
        {
            "name": "a", "id": "b", "run_id": "c", "status": "failed", "error": "x", "started_at": 1.0,
            "partitions": [{"topic": "t", "partition": 0, "offset": 1}],
        }
    ]
}  # fmt: skip


def _drain(_query: str | None, timeout_s: float) -> list[Drained]:
    assert 0 <= timeout_s < float("inf"), timeout_s
    return []


_loop = asyncio.new_event_loop()
_routes = routes(SyntheticMonitor(make_query("fraud")), ThreadPoolExecutor(1), Control(_drain, TOKEN))
_server = Guard(_routes, HostGuard("127.0.0.1", "127.0.0.1"))


def _ask(
    method: str, path: str, query: bytes = b"", headers: dict[str, bytes] | None = None, body: bytes = b""
) -> tuple[int, bytes]:
    """One request to the dashboard's application, without a socket; what it raises is raised."""
    sent: list[Any] = []
    given = {"host": b"127.0.0.1", **(headers or {})}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.encode(), value) for name, value in given.items()],
    }
    parts = [{"type": "http.request", "body": body[:7], "more_body": True}, {"type": "http.request", "body": body[7:]}]

    async def receive() -> Any:
        return parts.pop(0) if parts else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    _loop.run_until_complete(_server(scope, receive, send))
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent)


def _body(body: bytes) -> None:
    status, answer = _ask("POST", "/api/drain", headers={"authorization": f"Bearer {TOKEN}".encode()}, body=body)
    assert status in (200, 400, 413), status
    assert status == 200 or json.loads(answer)["error"]


def _path(text: str) -> None:
    # As the server does it: bytes that are no text become replacement characters.
    path = text.encode(errors="replace").decode()
    for one in (f"/api/queries/{path}/history", f"/assets/{path}", f"/{path}"):
        status, _ = _ask("GET", one)
        assert status in (200, 307, 404, 405), (one, status)
    for query in (text, f"strict={text}", urllib.parse.quote(text, errors="replace")):
        assert _ask("GET", "/health", query=query.encode("latin-1", errors="replace"))[0] == 200


def _headers(text: str) -> None:
    value = text.encode("utf-8", errors="replace")
    for name in ("host", "accept", "if-none-match"):
        status, _ = _ask("GET", "/metrics", headers={name: value})
        assert status in (200, 403), status
    assert _ask("POST", "/api/drain", headers={"authorization": value}, body=b"{}")[0] == 401


def _read(kind: type, text: str) -> object:
    return from_json(kind, text)


def _top(text: str) -> None:
    snapshot = from_json(Snapshot, text)
    _require_figures(snapshot)
    picture(snapshot, "10s")


def _note(text: str) -> None:
    folder = state_folder("dashboards")
    (folder / "fuzz.json").write_text(text, encoding="utf-8", errors="replace")
    dashboards.find()


def _checkpoint(line: str) -> None:
    for name in ("commits", "offsets"):
        (_FOLDER / name).mkdir(exist_ok=True)
    (_FOLDER / "commits" / "0").touch()
    (_FOLDER / "offsets" / "0").write_text(f"v1\n{{}}\n{line}", encoding="utf-8", errors="replace")
    _report(line, replay_of(str(_FOLDER)))
    replay_of(line)


def _report(text: str, replay: Any = None) -> None:
    failure = diagnose(text, 1)
    report = Incident("a.py", 0.0, 1.0, 1, failure, {"q": replay} if replay else {}, "n", [text, text], "l", text)
    report.markdown()
    to_json(report.report())
    to_json(report.summary())
    assert incidents.KEPT


def _properties(text: str) -> None:
    file = _FOLDER / "spark-defaults.conf"
    file.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    _from_properties(file)


def _arguments(given: list[str]) -> None:
    refuse_what_cannot_be_supervised(take_apart(given, {"--restarts"}, {"--help"}))
    hide_in_command(given)
    conf_of_arguments(given)


def _command_line(given: list[str]) -> None:
    """Only takes it apart: nothing is run."""
    command = typer.main.get_command(app)
    group: Any = command
    name, rest = (given[0], given[1:]) if given else ("", [])
    chosen = group.commands.get(name, group.commands["drain"])
    chosen.make_context(name, [word.replace("\x00", "") for word in rest])


def _redaction(text: str) -> None:
    shown = hide_in_text(f"{text}\npassword=geheim")
    assert "geheim" not in shown
    visible = visible_controls(shown)
    assert "\x1b" not in visible
    LineRedaction().hide(text)


def _output(printed: bytes) -> None:
    log = RotatingLog(_FOLDER / "run.log")
    Copy(io.BytesIO(printed), log, None).run()
    log.close()
    diagnose(printed.decode(errors="replace"), 1)


PARSERS = {
    "body of a drain": Parser(
        _body, st.one_of(json_texts.map(lambda text: text.encode(errors="replace")), st.binary(max_size=200))
    ),
    "paths and query strings": Parser(_path, texts),
    "headers": Parser(_headers, texts),
    "host": Parser(HostGuard("127.0.0.1", "127.0.0.1").refuses, texts),
    "address": Parser(dashboard_url, texts),
    "snapshot": Parser(_top, st.one_of(json_texts, changed(_SNAPSHOT)), (ValueError,)),
    "live figures": Parser(partial(_read, LiveFiguresMessage), json_texts, (ValueError,)),
    "note of a dashboard": Parser(_note, st.one_of(json_texts, changed(_NOTE))),
    "offsets of a checkpoint": Parser(
        _checkpoint, st.one_of(json_texts, changed({"topic": {"0": 1, "1": 2}, "other": {"0": 5}}))
    ),
    "incident": Parser(_report, texts),
    "redaction": Parser(_redaction, texts),
    "output": Parser(_output, st.binary(max_size=300)),
    "spark-defaults.conf": Parser(_properties, texts),
    "arguments": Parser(_arguments, words),
    "command line": Parser(_command_line, words, (_USAGE_ERROR, typer.Exit)),
    "seconds": Parser(partial(require_seconds, "it"), st.floats()),
    "name": Parser(partial(require_name, "it"), st.one_of(st.none(), texts)),
    "diagnosis": Parser(lambda one: diagnose(*one), st.tuples(texts, st.integers(-300, 300))),
    **{
        f"report: {kind.__name__}": Parser(
            partial(_read, kind),
            st.one_of(json_texts, changed(_ENDED)) if kind is ExitReport else json_texts,
            (ValueError,),
        )
        for kind in _REPORTS
    },
}
