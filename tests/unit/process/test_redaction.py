"""What never appears in a report, and that looking for it takes time in proportion to the text."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tailrace._process.redaction import HIDDEN, LineRedaction, hide_in_command, hide_in_text
from tailrace.errors import TailraceError
from tailrace.supervise.run.failures import diagnose

KEY = "-----BEGIN PRIVATE KEY-----\nMIIgeheim\ngeheim\n-----END PRIVATE KEY-----"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"

SECRETS = {
    "a Java option": "-Djavax.net.ssl.keyStorePassword=geheim -Dx=1",
    "a Java option in quotes": "-Dx.password='geheim geheim'",
    "an address": "cannot reach https://alice:geheim@db.example:5432/x",
    "an address without a scheme": "cannot reach alice:geheim@db.example:5432",
    "an address without a user": "redis://:geheim@cache.example",
    "an address of Oracle": "jdbc:oracle:thin:scott/geheim@//db.example:1521/x",
    "a bearer token": "sent Authorization: Bearer geheim.geheim-geheim",
    "a bearer token in prose": "the header was bearer geheimgeheim",
    "another scheme": "authorization: Basic geheimgeheim==",
    "a keystore key": "ssl.keystore.key=geheim",
    "a key in PEM": f"ssl.keystore.key = {KEY}",
    "the rest of a key in PEM": KEY.partition("\n")[2],
    "a key that was cut off": KEY.partition("-----END")[0],
    "JAAS": f'sasl.jaas.config={JAAS} username="geheim" password="geheim";',
    "JAAS in a map": f'Map(kafka.sasl.jaas.config -> {JAAS} username="geheim" x="geheim";)',
    "JAAS in JSON": '{"kafka.sasl.jaas.config": "' + JAAS + r" username=\"geheim\" password=\"geheim\";" + '"}',
    "a password in JSON in JSON": r'{"line": "{\"password\": \"geheim geheim\"}"}',
    "a password in XML": "<password>geheim</password>",
    "a password in a dict": "{'password': 'geheim', 'user': 'alice'}",
    "a password with punctuation": "password=geheim,geheim;geheim)geheim",
    "a quote that is not closed": 'password="geheim geheim',
    "an option": "--keystore-password geheim --x 1",
    "a schema registry": "basic.auth.user.info=alice:geheim",
    "Azure": "AccountKey=geheim== sig=geheim",
    "a JSON web token": "eyJhbGciOiJIgeheim.eyJzdWIiOiIxMjMgeheim.geheim",
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_hidden_in_text(name: str) -> None:
    shown = hide_in_text(f"before {SECRETS[name]}")
    assert "geheim" not in shown.lower()
    assert HIDDEN in shown
    assert shown.startswith("before ") or "PEM" in name


@pytest.mark.parametrize("name", SECRETS)
def test_what_is_hidden_in_a_command(name: str) -> None:
    shown = hide_in_command(["--driver-java-options", f"-Dinnocent=1 {SECRETS[name]}", "app.py"])
    assert "geheim" not in " ".join(shown).lower()
    assert shown[2] == "app.py"


@pytest.mark.parametrize(
    "text",
    [
        "Query scores [id = 1, runId = 2] at topic 'secrets', partition 0, offset 7: ValueError: 12:30",
        "the dashboard is at http://127.0.0.1:4050/ and answers mail to a@b.example",
        "a java.lang.Object:x@1b2c3d4 and a foo:org.example.Bar@5f3a9c",
        "-----BEGIN CERTIFICATE-----\nMIIopen\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_shown(text: str) -> None:
    assert hide_in_text(text) == text


def test_a_key_in_several_lines_of_a_log() -> None:
    redaction = LineRedaction()
    shown = [redaction.hide(f"{line}\n") for line in f"before\n{KEY}\nbehind password=geheim".split("\n")]
    assert "geheim" not in "".join(shown).lower()
    assert shown[0] == "before\n"
    assert shown[-1] == f"behind password={HIDDEN}\n"


def test_a_long_text_is_cut() -> None:
    assert len(hide_in_text("x" * 1_000_000)) < 250_000


# Each once took time in proportion to the square of its length, or might.
EVIL = [
    "a", "password", "password ", 'password="', "password='", "password=\\", "password=\\\"", "pass.", "--password-",
    "-", "a:", "a:a@", "://", "://a:", "http://a:b", "bearer ", "eyJ", "eyJaaaaaaaa.", "eyJ-", "thin:a/", "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "jaas=a", "jaas ", " ", "\n", "\n ", "\"", "\\", "\\\"",
    "[TAILRACE_A] ", "[TAILRACE_", "\nFix: ", "[TAILRACE_A] a\nFix: a", "Traceback (most recent call last):\n ", "[A",
    "topic '", "topic 'a', partition 1, offset 1", "Query ", "Query a [id = ", "Identifier: ", "STATE_STORE_",
    "CHECKPOINT_", "AuthorizationException", "Executor ", "[PYTHON_EXCEPTION]", "\n=== Streaming Query", "1", "Error: ",
]  # fmt: skip


def cost_s(work: Callable[[str], object], text: str) -> float:
    """The least of several times, of this thread only: other processes of a busy machine do not count."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        work(text)
        times.append(time.thread_time() - begun)
    return min(times)


@pytest.mark.parametrize("piece", EVIL, ids=repr)
@pytest.mark.parametrize("prefix", ["", "Traceback (most recent call last):\nE: [PYTHON_EXCEPTION] Traceback\n"])
@pytest.mark.parametrize("work", [hide_in_text, TailraceError.find_in, lambda text: diagnose(text, 1)])
def test_twice_the_text_takes_twice_the_time(work: Callable[[str], object], prefix: str, piece: str) -> None:
    def of(length: int) -> float:
        return cost_s(work, (prefix + piece * (length // len(piece)))[:length])

    def ratio() -> float:
        once = of(length)
        # Too short to compare below this. A square would have shown at this length.
        return 0 if once < 0.002 else of(2 * length) / once

    length = 16_000
    # A busy machine can disturb one comparison. A square would show in each of them.
    assert any(ratio() < 3 for _ in range(5)), "more than in proportion"
