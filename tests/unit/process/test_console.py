"""Nothing that a record contains reaches the terminal as a command."""

from __future__ import annotations

import io

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tailrace._process.console import SafeConsole, visible_controls
from tailrace.contract.codec import decode, encode
from tailrace.contract.snapshot import Snapshot
from tailrace.dashboard.top import picture
from tests.helpers.synthetic_monitor import SyntheticMonitor, make_query

EVIL = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\x08\x7f\x00\u202ee\rf"


def printed(*what: object, color: bool = False) -> str:
    output = io.StringIO()
    console = SafeConsole(file=output, force_terminal=color, width=200, highlight=False)
    for one in what:
        console.print(one)
    return output.getvalue()


@pytest.mark.parametrize("what", [EVIL, Text(EVIL), f"[bold]{EVIL}[/]"])
def test_what_is_printed(what: object) -> None:
    table = Table()
    table.add_column(Text(EVIL))
    table.add_row(Text(EVIL))
    shown = printed(what, table)
    assert not {"\x1b", "\x07", "\x9b", "\x08", "\x7f", "\x00", "\u202e", "\r"} & set(shown)
    assert "\\x1b]0;owned" in shown


def test_color_stays() -> None:
    shown = printed(Text("red\x1b[0m", style="red"), color=True)
    assert "\x1b[31mred\\x1b[0m\x1b[0m" in shown


def test_a_live_picture_moves_the_cursor_itself() -> None:
    output = io.StringIO()
    console = SafeConsole(file=output, force_terminal=True, width=80, height=20)
    with Live(Text(EVIL), console=console, screen=True, auto_refresh=False) as live:
        live.update(Text(EVIL), refresh=True)
    shown = output.getvalue()
    assert "\x1b[?1049h" in shown, "the other screen"
    assert "\x1b]0;owned" not in shown


def test_the_picture_of_a_query_with_evil_names() -> None:
    query = make_query(EVIL, status="failed", error=EVIL)
    snapshot = decode(Snapshot, encode(SyntheticMonitor(query).snapshot()))
    assert not {"\x1b", "\x07", "\x9b"} & set(printed(picture(snapshot, "10s")))


def test_what_people_need_stays() -> None:
    assert visible_controls("tab\tand line\nand ümläut €") == "tab\tand line\nand ümläut €"
