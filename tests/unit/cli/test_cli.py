from __future__ import annotations

import sys
from pathlib import Path

import pytest

import tailrace
from tests.helpers.processes import tailrace as tailrace_cli


def test_version() -> None:
    assert tailrace_cli("--version").stdout == f"tailrace {tailrace.__version__}\n"


def test_the_installed_command_is_this_one() -> None:
    assert (Path(sys.executable).parent / "tailrace").exists()


@pytest.mark.parametrize(
    "arguments", [("demo", "--no-such-option"), ("demo", "--seconds", "soon"), ("demo", "--mode", "fast"), ("dance",)]
)
def test_a_mistyped_command_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    result = tailrace_cli(*arguments)
    assert result.returncode == 2
    assert "Usage" in result.stderr
    assert "Traceback" not in result.stderr


def test_help_names_every_command() -> None:
    result = tailrace_cli("--help")
    assert result.returncode == 0
    assert all(command in result.stdout for command in ("chaos", "demo", "doctor", "kafka"))


def test_no_color_without_a_terminal() -> None:
    printed = tailrace_cli("kafka", "status").stderr
    assert "No broker is running" in printed
    assert "\x1b" not in printed


def test_an_error_of_the_plugin_is_found_in_a_longer_text() -> None:
    text = "java.lang.X: [TAILRACE_SOME_CODE] it is wrong.\nFix: do this\n     and that\n\tat a.b.C(D.scala:1)\n"
    found = tailrace.TailraceError.find_in(text)
    assert found is not None
    assert (found.code, found.problem, found.fix) == ("TAILRACE_SOME_CODE", "it is wrong.", "do this\n     and that")
    assert tailrace.TailraceError.find_in("nothing of ours") is None


def test_what_spark_appends_to_an_error_of_the_plugin_is_left_out() -> None:
    text = "[STREAM_FAILED] x: [TAILRACE_A] wrong\nFix: do SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id]"
    found = tailrace.TailraceError.find_in(text)
    assert found is not None
    assert found.fix == "do"
