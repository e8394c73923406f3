"""What `make release-check` says of a changelog, and that a failure stops what builds on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import release_check
from tools.release_check import CheckError, ReleaseCheck


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseCheck:
    monkeypatch.setattr(release_check, "CHANGELOG", tmp_path / "CHANGELOG.md")
    return ReleaseCheck(tmp_path)


def write_changelog(*sections: str) -> None:
    release_check.CHANGELOG.write_text("# Changelog\n\n" + "\n\n".join(sections) + "\n", encoding="utf-8")


@pytest.mark.parametrize("unreleased", [[], ["## [Unreleased]"], ["## Unreleased\n\n"]])
@pytest.mark.parametrize("title", ["[{}] - 2026-11-17", "{}", "{} (2026-11-17)"])
def test_a_changelog_with_a_section_for_the_version(check: ReleaseCheck, unreleased: list[str], title: str) -> None:
    write_changelog(*unreleased, f"## {title.format(check.version)}\n\n- Something.")
    assert check.version in check.changelog()


@pytest.mark.parametrize(
    "sections",
    [
        ["## [Unreleased]\n\n- Something."],
        ["## [0.0.0]\n\n- Something."],
        ["## [Unreleased]\n\n- Something.", "## [{}]\n\n- Something."],
    ],
)
def test_a_changelog_that_is_not_ready(check: ReleaseCheck, sections: list[str]) -> None:
    write_changelog(*(section.format(check.version) for section in sections))
    with pytest.raises(CheckError):
        check.changelog()


def test_what_builds_on_a_failed_check_is_skipped(check: ReleaseCheck, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> str:
        raise CheckError("no disk")

    check.check("build", fail)
    check.check("install", lambda: "never", after=("build",))
    check.check("tag", lambda: "is free")
    assert check.failed == ["build", "install"]
    marks = [line[0] for line in capsys.readouterr().out.splitlines()]
    assert marks == ["✗", "–", "✓"]
