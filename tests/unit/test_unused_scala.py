"""Every member of the plugin is used somewhere. The compiler looks only for private ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USERS = {"jvm": (".scala", ".py", ".DataSourceRegister"), "src": (".py",), "tests": (".scala", ".py")}

# Strings are kept: they have references in them, and must not be taken for comments.
COMMENT = re.compile(r'("""(?s:.*?)"""|"(?:\\.|[^"\\\n])*")|/\*(?s:.*?)\*/|//[^\n]*')
MODIFIER = r"(?:(?:private|protected)(?:\[\w+\])?|final|lazy|implicit|sealed|abstract|case)\s+"
MEMBER = re.compile(rf"^\s*(?:@\w+\s+)*({MODIFIER})*(?:def|val|var|class|object|trait|type)\s+(\w+)", re.MULTILINE)
# Java's serialization calls these.
CALLED_BY_NAME = {"readResolve", "writeReplace"}


def code(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    return without_comments(text) if file.suffix == ".scala" else text


def without_comments(text: str) -> str:
    return COMMENT.sub(lambda match: match[1] or " ", text)


def members(text: str) -> Iterator[str]:
    for match in MEMBER.finditer(text):
        # Some settings are read by Python, by their key.
        is_setting = text.startswith(": Setting[", match.end())
        if "implicit" not in match[0] and match[2] not in CALLED_BY_NAME and not is_setting:
            yield match[2]


def unused(sources: list[str], users: list[str]) -> set[str]:
    """The names that occur only where they are declared."""
    words = Counter(word for text in users for word in re.findall(r"\w+", text))
    declared = Counter(name for text in sources for name in members(text))
    return {name for name, times in declared.items() if words[name] <= times}


def test_every_member_of_the_plugin_is_used() -> None:
    sources = [code(file) for file in (ROOT / "jvm" / "src").rglob("*.scala")]
    users = [
        code(file)
        for folder, kinds in USERS.items()
        for file in (ROOT / folder).rglob("*")
        if file.name.endswith(kinds) and file.is_file()
    ]
    assert len(sources) > 50
    assert unused(sources, users) == set()


def test_what_is_not_used_is_found() -> None:
    source = 'object A {\n  def used: Int = 1 // unused\n  private[a] val unused = "http://x"\n  /* unused */\n}\n'
    assert unused([without_comments(source)], [without_comments(source), "A.used()"]) == {"unused"}
