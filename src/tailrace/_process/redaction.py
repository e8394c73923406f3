"""No secrets in reports, logs, answers and errors.

Every pattern takes time in proportion to the text: each repetition is bounded, or cannot match in two ways. Texts come
from records, so a producer could otherwise keep the supervisor busy.
"""

from __future__ import annotations

import re

HIDDEN = "*********"
LONGEST_TEXT = 200_000
"""Longer texts are cut before anything is looked for."""

# As Spark's own spark.redaction.regex, and what else is a secret by its name.
_SECRET = (
    r"secret|password|passwd|passphrase|pwd|token|credential|jaas|authorization|auth[._-]user[._-]info|"  # noqa: S105
    r"(?:access|api|account|private|keystore|signing|encryption)[._-]?key|ssl[._-]key|sig(?=\s{0,8}=)"
)
_KEY = re.compile(_SECRET, re.IGNORECASE)
# A closing quote may be missing: the rest of the line is hidden then.
_QUOTED = r"""\\+"[^"\\\n]*(?:\\+")?|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?"""
_SEPARATOR = r"""[\w.\-]{0,64}[\\"'\]]{0,4}\s{0,8}(?:=>|->|[=:>])\s{0,8}"""
# A login module's options belong to its value, up to the semicolon.
_JAAS = re.compile(rf"(jaas{_SEPARATOR})({_QUOTED}|[^;\n]+)", re.IGNORECASE)
# `Authorization: Basic dXNlcg==` has a word in front of the secret.
_SCHEME = r"(?:(?:bearer|basic|digest|negotiate|token)\s{1,8})?"
_NAMED = re.compile(rf"((?:{_SECRET}){_SEPARATOR})({_QUOTED}|{_SCHEME}\S+)", re.IGNORECASE)
_OPTION = re.compile(rf"((?<!\S)-{{1,2}}[\w.\-]{{0,64}}?(?:{_SECRET})[\w.\-]{{0,64}}\s{{1,8}})({_QUOTED}|\S+)", re.I)
_BEARER = re.compile(r"(\bbearer\s{1,8})([\w.~+/=\-]{6,})", re.IGNORECASE)
_JSON_WEB_TOKEN = re.compile(r"(?<![\w-])()(eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?)")
# user:password@host, with and without a scheme; not Object@1b2c3d, as Java prints it.
_IN_ADDRESS = re.compile(
    r"((?:(?<=://)|(?<![\w.:/@+\-]))[\w.+%~!$&*\-]{0,64}:)([^\s:/@,;\"'()\[\]{}<>]{1,256}|(?<=//:)[^\s/@]{1,256})"
    r"(?=@(?![0-9a-f]{5,8}\b)[\w\[])"
)
_IN_ORACLE_ADDRESS = re.compile(r"(\bthin:[\w.+\-]{1,64}/)([^\s@/]{1,256})(?=@)")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z0-9 ]{0,40}-----)?"
)
_END_OF_PRIVATE_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_PATTERNS = (_JAAS, _NAMED, _OPTION, _BEARER, _JSON_WEB_TOKEN, _IN_ADDRESS, _IN_ORACLE_ADDRESS)


def hide_in_command(words: list[str]) -> list[str]:
    """A command line: `--conf key=value` and `--option value` whose name is that of a secret, and secrets in values."""
    return [_hidden(word, before) for before, word in zip(["", *words], words, strict=False)]


def hide_in_text(text: str) -> str:
    """What an application or Spark prints: `password=…`, `"token": "…"`, `user:…@host`, private keys."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}… ({len(text) - LONGEST_TEXT} more characters)"
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    # The text may begin in the middle of a key.
    if (rest := _END_OF_PRIVATE_KEY.search(text)) is not None:
        text = f"{HIDDEN}{text[rest.end() :]}"
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


class LineRedaction:
    """The same for a stream of lines, of which a private key takes several."""

    def __init__(self) -> None:
        self._in_key = False

    def hide(self, line: str) -> str:
        if self._in_key:
            if (end := _END_OF_PRIVATE_KEY.search(line)) is None:
                return ""
            self._in_key = False
            return hide_in_text(line[end.end() :])
        self._in_key = "-----BEGIN" in line and "PRIVATE KEY-----" in line and "-----END" not in line
        return hide_in_text(line) + ("\n" if self._in_key and line.endswith("\n") else "")


def _hidden(word: str, before: str) -> str:
    name, equals, value = word.removeprefix("--conf=").partition("=")
    if equals and value and _KEY.search(name) and not re.search(r"\s", name):
        return f"{word.removesuffix(value)}{HIDDEN}"
    return HIDDEN if before.startswith("-") and "=" not in before and _KEY.search(before) else hide_in_text(word)
