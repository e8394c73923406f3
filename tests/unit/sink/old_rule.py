"""A rule that looks right and is not: the model must tell."""

from __future__ import annotations

from tests.unit.sink.rows import Answer, Decided, Decision, Identity, Replay


def decide(replay: Replay) -> Answer:
    """Drops a row if the newest version of it in the output is equal.

    A row that differs is written, with all later ones of its key. But a row that the output does not hold, or that has
    no identity, is written as if nothing of its key followed it; and the order of the records does not count.
    """
    newest: dict[Identity, str] = {}
    for one in replay.written:
        if one.row.identity is not None:
            newest[one.row.identity] = one.row.content
    diverged = set()
    decided = []
    for at, row in enumerate(replay.rows, 1):
        content = newest.get(row.identity) if row.identity else None
        if content is None:
            decision = Decision.WRITE
        else:
            if content != row.content:
                diverged.add(row.key)
            decision = Decision.CORRECT if row.key in diverged else Decision.DROP
        decided.append(Decided(row, decision, at, row.identity.ordinal if row.identity else 0))
    return Answer(tuple(decided), ())
