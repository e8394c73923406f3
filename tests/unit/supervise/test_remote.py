"""Whom `tailrace drain` tells the token."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tailrace import TailraceError
from tailrace._process import dashboards, http_client
from tailrace.cli.main import app
from tailrace.supervise.remote import TOKEN_VARIABLE, drain_at

OWN = "token-of-this-machine"


class Recorder:
    """A server that notes which token it is sent, and redirects to another one if told."""

    def __init__(self, redirect_to: str | None = None, status: int = 200) -> None:
        self.tokens: list[str] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                recorder.tokens.append(self.headers.get("authorization", ""))
                self.rfile.read(int(self.headers.get("content-length", "0")))
                body = b'{"drained": []}'
                self.send_response(status)
                if redirect_to:
                    self.send_header("location", redirect_to)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Recorder]]:
    monkeypatch.setenv("TAILRACE_STATE", str(tmp_path))
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    made: list[Recorder] = []

    def make(redirect_to: str | None = None, status: int = 200) -> Recorder:
        made.append(Recorder(redirect_to, status))
        return made[-1]

    yield make
    for one in made:
        one.server.shutdown()
        one.server.server_close()


def announce(recorder: Recorder, host: str = "127.0.0.1") -> None:
    dashboards.announce(f"http://{host}:{recorder.port}/", "mine", OWN)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_our_own_application_gets_its_token(record: Callable[..., Recorder], host: str) -> None:
    here = record()
    announce(here)
    address = host.replace("127.0.0.2", "127.0.0.1")
    drain_at(f"http://{address}:{here.port}", None, 1)
    assert here.tokens == [f"Bearer {OWN}"]


def test_another_machine_with_the_same_port_does_not(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is not loopback: here it leads to a server that keeps what it is sent."""
    there = record()
    announce(there)
    look_up = socket.getaddrinfo

    def elsewhere(host: str, *arguments: object, **named: object) -> object:
        return look_up("127.0.0.1" if host == "elsewhere.example" else host, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", elsewhere)
    monkeypatch.setenv("no_proxy", "*")
    drain_at(f"http://elsewhere.example:{there.port}", None, 1)
    assert [one for one in there.tokens if OWN in one] == []
    assert len(there.tokens) == 1


def test_an_application_that_listens_for_all_is_known_by_the_name_in_its_note(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, proxy = record(), record()
    announce(here, "this-machine.example")
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **named: look_up("127.0.0.1" if host.endswith(".example") else host, *rest, **named),
    )
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    drain_at(f"http://this-machine.example:{here.port}", None, 1)
    assert here.tokens == [f"Bearer {OWN}"]
    assert proxy.tokens == [], "a proxy sees the token"


def test_another_port_on_this_machine_does_not(record: Callable[..., Recorder]) -> None:
    here, other = record(), record()
    announce(here)
    drain_at(f"http://127.0.0.1:{other.port}", None, 1)
    assert [one for one in other.tokens if OWN in one] == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    thief = record()
    here = record(f"http://127.0.0.1:{thief.port}/api/drain", status)
    announce(here)
    with pytest.raises(TailraceError) as refused:
        drain_at(f"http://127.0.0.1:{here.port}", None, 1)
    assert refused.value.code == "TAILRACE_DRAIN_FAILED"
    monkeypatch.setenv(TOKEN_VARIABLE, "given")
    with pytest.raises(TailraceError):
        drain_at(f"http://127.0.0.1:{here.port}", None, 1)
    assert here.tokens[-1] == "Bearer given"
    assert thief.tokens == []


@pytest.mark.parametrize("timeout_s", [float("nan"), float("inf"), -1.0])
def test_a_timeout_that_is_none(record: Callable[..., Recorder], timeout_s: float) -> None:
    here = record()
    with pytest.raises(TailraceError) as refused:
        drain_at(f"http://127.0.0.1:{here.port}", None, timeout_s)
    assert refused.value.code == "TAILRACE_BAD_ARGUMENT"
    assert here.tokens == []


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_does_not_mean_all(record: Callable[..., Recorder], name: str) -> None:
    here = record()
    with pytest.raises(TailraceError) as refused:
        drain_at(f"http://127.0.0.1:{here.port}", name, 1)
    assert refused.value.code == "TAILRACE_BAD_ARGUMENT"
    assert here.tokens == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("drain", "127.0.0.1:1", "--query", ""),
        ("drain", "127.0.0.1:1", "--timeout", "nan"),
        ("drain", "127.0.0.1:1", "--timeout", "-1"),
        ("top", "127.0.0.1:1", "--query", ""),
        ("run", "--drain-timeout", "inf", __file__),
        ("run", "--backoff", "inf", __file__),
        ("run", "--query-grace", "inf", __file__),
        ("chaos", "--patience", "inf", "--dry-run"),
        ("chaos", "--seconds", "inf", "--dry-run"),
    ],
)
def test_the_command_line_refuses_them_too(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*arguments])
    assert isinstance(done.exception, TailraceError)
    assert done.exception.code == "TAILRACE_BAD_ARGUMENT"


@pytest.mark.parametrize(
    "url", ["http://[", "http://x:y", "http://", "file:///etc/passwd", "http://a\x1b[2J:1", "", "//"]
)
def test_what_is_no_address(url: str) -> None:
    for attempt in (lambda: drain_at(url, None, 1), lambda: http_client.dashboard_url(url)):
        with pytest.raises(TailraceError) as refused:
            attempt()
        assert refused.value.code == "TAILRACE_DASHBOARD_UNREACHABLE"


@pytest.mark.parametrize(
    "note", ["[" * 100_000, '{"url": 1, "application": "a", "pid": 1, "token": ""}', '{"pid": 0}', "\x00", "null"]
)
def test_a_note_that_is_none_is_removed(
    note: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, record: Callable[..., Recorder]
) -> None:
    announce(record())
    file = tmp_path / "dashboards" / "x.json"
    file.write_text(note)
    group = json.dumps({"url": "http://127.0.0.1:1", "application": "a", "pid": 0, "token": OWN})
    (tmp_path / "dashboards" / "group.json").write_text(group)
    assert [one.pid for one in dashboards.find()] == [os.getpid()]
    assert not file.exists()
