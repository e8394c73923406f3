"""The state of a long run: which pieces are done, in a file that the next command continues from."""

from __future__ import annotations

import json
from pathlib import Path

from tailrace._version import __version__
from tailrace.chaos.options import ChaosOptions
from tailrace.chaos.result import ChaosResult, PieceResult
from tailrace.errors import TailraceError

NAME = "state.json"


def has_state(folder: Path) -> bool:
    return (folder / NAME).exists()


def save(result: ChaosResult, folder: Path) -> None:
    """Write the state of a run. A reader sees the old state or the new one, never a part."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{NAME}.draft"
    state = {
        "tailrace": __version__,
        "options": result.options.to_dict(),
        "pieces": [piece.to_dict() for piece in result.pieces],
    }
    draft.write_text(json.dumps(state, indent=1), encoding="utf-8")
    draft.replace(folder / NAME)


def load(folder: Path) -> ChaosResult:
    file = folder / NAME
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        options = ChaosOptions.from_dict(state["options"])
        return ChaosResult(options, [PieceResult.from_dict(each) for each in state["pieces"]], folder)
    except FileNotFoundError:
        raise _unreadable(file, "is not there") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise _unreadable(file, f"cannot be read ({type(failure).__name__})") from None


def _unreadable(file: Path, why: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_NO_CHAOS_STATE",
        f"{file} {why}.",
        "name the folder that `tailrace chaos` printed when it started, or start a new run with --rounds in another "
        "folder.",
    )
