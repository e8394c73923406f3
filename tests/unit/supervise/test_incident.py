"""What a report of an incident shows, who can read it, and how many there are; and the log beside it."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from tailrace._process.redaction import HIDDEN
from tailrace.contract.codec import from_json, to_json
from tailrace.supervise.run import incident as incidents
from tailrace.supervise.run.failures import Cure, Failure
from tailrace.supervise.run.incident import KEPT, Incident, IncidentReport
from tailrace.supervise.run.output import Copy, RotatingLog
from tailrace.supervise.run.replay import Replay
from tests.unit.process.test_redaction import SECRETS


def incident(script: str = "app.py", ended_at: float = 1e9, secret: str = "") -> Incident:
    return Incident(
        script=script,
        began_at=ended_at - 1,
        ended_at=ended_at,
        exit_code=1,
        failure=Failure("UNKNOWN", f"it said {secret}", f"do not say {secret}", Cure.RESTART),
        replays={"scores": Replay("s3a://alice:geheim@bucket/x", problem=f"not read: {secret}")},
        next_step="started again",
        command=["spark-submit", "--driver-java-options", f"-Dx=1 {secret}", "--conf", "a.password=geheim", "app.py"],
        log="run.log",
        log_end=f"it began\n{secret}\nit ended",
    )


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_is_in_a_report(name: str, tmp_path: Path) -> None:
    report = incidents.write(incident(secret=SECRETS[name]), tmp_path)
    for file in (report, report.with_suffix(".json")):
        text = file.read_text()
        assert "geheim" not in text.lower(), file.name
        assert HIDDEN in text
    assert "geheim" not in to_json(incident(secret=SECRETS[name]).summary()).lower()


def test_the_json_of_a_report_is_read_back(tmp_path: Path) -> None:
    file = incidents.write(incident(), tmp_path).with_suffix(".json")
    assert from_json(IncidentReport, file.read_text()) == incident().report()


def test_only_this_user_can_read_a_report(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        report = incidents.write(incident(), tmp_path / "new" / "folder")
    finally:
        os.umask(before)
    assert stat.S_IMODE(report.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in report.parent.iterdir()] == [0o600, 0o600]


@pytest.mark.parametrize("given", [True, False])
def test_the_newest_are_kept(given: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_STATE", str(tmp_path))
    folder = tmp_path / "mine" if given else None
    others = incidents.write(incident("app-two.py"), folder)
    note = others.parent / "app-notes.md"
    note.write_text("the user's own")
    written = [incidents.write(incident(ended_at=1e9 + second), folder) for second in range(KEPT + 5)]
    assert [report.exists() for report in written] == [False] * 5 + [True] * KEPT
    assert [report.with_suffix(".json").exists() for report in written] == [False] * 5 + [True] * KEPT
    assert others.exists()
    assert note.exists()


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    report = incidents.write(incident(), tmp_path)
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    report.unlink()
    report.symlink_to(victim)
    incidents.write(incident(), tmp_path)
    assert victim.read_text() == "as it was"
    assert not report.is_symlink()


@pytest.mark.parametrize("name", SECRETS)
def test_no_secret_is_in_the_log(name: str, tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "run.log")
    text = f"it began\n{SECRETS[name]}\nit ended"
    copy = Copy(_InPieces(text.encode()), log, onto=None)
    copy.run()
    log.close()
    shown = log.path.read_text()
    # A key whose beginning was not seen cannot be known line by line.
    assert "geheim" not in shown.lower() or "rest of a key" in name
    assert shown.startswith("it began\n")
    assert "it ended" in shown or "cut off" in name
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_the_log_has_every_byte_that_is_no_secret(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "run.log")
    text = b"\xff\xfe no text\r\n\x1b[1mbold\n\nlast " + b"x" * 200_000
    Copy(_InPieces(text), log, onto=None).run()
    log.close()
    assert log.path.read_bytes().replace(b"\n", b"") == text.replace(b"\n", b"")


class _InPieces(io.BytesIO):
    """Three bytes at a time."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(3)


class _Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


def test_what_an_application_prints_does_not_steer_the_terminal(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "run.log")
    printed = "ValueError: \x1b]0;owned\x07 \x9b2J ü € 𝄞\r\n\tand on".encode()
    terminal, pipe = _Terminal(), io.BytesIO()
    Copy(_InPieces(printed), log, terminal).run()
    Copy(_InPieces(printed), log, pipe).run()
    assert terminal.getvalue().decode() == "ValueError: \\x1b]0;owned\\x07 \\x9b2J ü € 𝄞\r\n\tand on"
    assert pipe.getvalue() == printed, "a pipe gets what was printed"
