"""Files of client properties are read as Java reads them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace._kafka.java_properties import parse, read_file, resolve
from tailrace.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("  a : b ", {"a": "b "}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# c\n! d\n\na=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one \\\n   two", {"a": "one two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        (r"a\ b\=c=d\u00e9\tx", {"a b=c": "dé\tx"}),
        ('a=x username="u" password="p#1";', {"a": 'x username="u" password="p#1";'}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
    ],
)
def test_parse(text: str, expected: dict[str, str]) -> None:
    assert parse(text) == expected


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if c in "=: \t\f\r\n#!\\" or ord(c) > 126 else c for c in text)


SIMPLE = st.text(st.characters(min_codepoint=32, max_codepoint=0x2000), max_size=20)


@settings(deadline=None)
@given(st.dictionaries(SIMPLE.filter(bool), SIMPLE, max_size=6))
def test_what_is_written_with_escapes_is_read_as_it_was(properties: dict[str, str]) -> None:
    assert parse("".join(f"{escaped(key)}={escaped(value)}\n" for key, value in properties.items())) == properties


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_breaks_the_parser(text: str) -> None:
    found = parse(text)
    with contextlib.suppress(ConfigurationError):
        resolve(found)


def test_references_of_configuration_providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets").write_text("password=hush\n", encoding="utf-8")
    (tmp_path / "user").write_text("app", encoding="utf-8")
    monkeypatch.setenv("TAILRACE_TEST_TRUST", "/ca.pem")
    package = "org.apache.kafka.common.config.provider"
    file = tmp_path / "client.properties"
    file.write_text(
        "config.providers=file, dir,env\n"
        f"config.providers.file.class={package}.FileConfigProvider\n"
        f"config.providers.dir.class={package}.DirectoryConfigProvider\n"
        f"config.providers.env.class={package}.EnvVarConfigProvider\n"
        f'sasl.jaas.config=x required username="${{dir:{tmp_path}:user}}" '
        f'password="${{file:{tmp_path / "secrets"}:password}}";\n'
        "ssl.truststore.location=${env:TAILRACE_TEST_TRUST}\n"
        "client.id=${other:a:b}\n",
        encoding="utf-8",
    )
    assert read_file(file) == {
        "sasl.jaas.config": 'x required username="app" password="hush";',
        "ssl.truststore.location": "/ca.pem",
        "client.id": "${other:a:b}",
    }


@pytest.mark.parametrize(
    ("of_class", "reference"),
    [("FileConfigProvider", "/nowhere:key"), ("DirectoryConfigProvider", "/etc:../etc/passwd"), ("Vault", "a:b")],
)
def test_a_reference_without_a_value_is_refused(of_class: str, reference: str) -> None:
    given = {
        "config.providers": "p",
        "config.providers.p.class": f"org.apache.kafka.common.config.provider.{of_class}",
        "a": f"${{p:{reference}}}",
    }
    with pytest.raises(ConfigurationError) as refused:
        resolve(given)
    assert refused.value.code == "TAILRACE_BAD_KAFKA_CONFIG"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x9f")
    for file in (tmp_path / "missing", tmp_path, tmp_path / "binary"):
        with pytest.raises(ConfigurationError) as refused:
            read_file(file)
        assert refused.value.code == "TAILRACE_BAD_KAFKA_CONFIG"
