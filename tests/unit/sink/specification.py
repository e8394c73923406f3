"""The deduplicator as a specification: as plain as it can be said, without regard to speed.

The real one is in `jvm/src/org/apache/spark/sql/tailrace/sink/dedup`. The two must give the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from tests.unit.sink.rows import Answer, Decided, Decision, Replay, Row, Written

Judge = Callable[[Replay], Answer]


def decide(replay: Replay) -> Answer:
    if not replay.written:
        return Answer(
            tuple(Decided(row, Decision.WRITE, at, _ordinal(row)) for at, row in enumerate(replay.rows, 1)), ()
        )
    return _stateful(replay) if replay.stateful else _stateless(replay)


def _stateful(replay: Replay) -> Answer:
    mine = [one for one in replay.written if one.task == replay.task]
    pointer: dict[str, int] = {}
    diverged: set[str] = set()
    last: dict[str, int] = {}
    taken: set[int] = set()
    decided = []

    def equal_in(row: Row, rows: Iterable[Written]) -> Iterable[Written]:
        """What the row may be in the output: of the same record, or else made by time before the row could make it."""
        alike = [one for one in rows if (one.key, one.row.content) == (row.key, row.content)]
        by_time = [one for one in alike if one.row.identity is None and one.row.epoch == replay.epoch]
        if row.identity is None:
            return by_time
        of_record = [one for one in alike if one.row.identity and one.row.identity.record == row.identity.record]
        return of_record or by_time

    def is_known(row: Row, rows: Iterable[Written]) -> bool:
        return row.identity is not None and any(one.row.identity == row.identity for one in rows)

    def rewrite(row: Row, rows: Iterable[Written]) -> Decision:
        return Decision.CORRECT if is_known(row, rows) else Decision.WRITE

    def compacted_away(row: Row, rows: list[Written]) -> bool:
        if not replay.compacted or row.identity is None:
            return False
        if pointer[row.key or ""] == len(rows) or is_known(row, rows):
            return False
        newest = [_offset(one.row) for one in mine if _of_partition(one.row, row)]
        return bool(newest) and max(newest) >= row.identity.offset

    def judge(row: Row, at: int) -> Decision:
        if row.key is None:
            equal = [one.offset for one in equal_in(row, (one for one in mine if one.offset not in taken))]
            taken.update(equal[:1])
            return Decision.DROP if equal else rewrite(row, mine)
        rows = [one for one in mine if one.key == row.key]
        if not rows:
            return Decision.WRITE
        if row.key in diverged:
            return rewrite(row, rows)
        first = pointer.setdefault(row.key, 0)
        equal_at = [rows.index(one) for one in equal_in(row, rows[first:])]
        if row.identity is None and at >= replay.expecting:
            # Made by time, and no row of a record may follow that is in the output.
            same = row.task, row.epoch
            equal_at = [i for i in equal_at if all(_made_by_time(one.row) == same for one in rows[i:])]
        if equal_at or compacted_away(row, rows):
            pointer[row.key] = equal_at[0] + 1 if equal_at else first
            last[row.key] = at
            return Decision.DROP
        diverged.add(row.key)
        return rewrite(row, rows)

    for at, row in enumerate(replay.rows):
        decided.append(Decided(row, judge(row, at), at + 1, _ordinal(row)))
    stale = []
    for key, at in last.items():
        rows = [one for one in mine if one.key == key]
        if key not in diverged and pointer[key] < len(rows) and not equal_in(replay.rows[at], rows[-1:]):
            stale.append(at)
    end = len(replay.rows)
    finished = tuple(Decided(replay.rows[at], Decision.CORRECT, end, _ordinal(replay.rows[at])) for at in sorted(stale))
    return Answer(tuple(decided), finished)


def _stateless(replay: Replay) -> Answer:
    diverged: set[tuple[int, str | None]] = set()

    def in_order(one: Written) -> bool:
        """No row of the same key, task and source partition that is made from an older record follows it."""
        return not any(
            later.offset > one.offset
            and later.key == one.key
            and later.task == one.task
            and _of_partition(later.row, one.row)
            and _offset(later.row) < _offset(one.row)
            for later in replay.written
        )

    def latest_versions(row: Row) -> list[Written]:
        versions: dict[int, Written] = {}
        for one in replay.written:
            if one.row.identity and row.identity and one.row.identity.record == row.identity.record:
                versions.pop(one.row.identity.ordinal, None)
                versions[one.row.identity.ordinal] = one
        return list(versions.values())

    def place(row: Row) -> tuple[int, str | None]:
        return _partition(row), row.key

    def drop_or_correct(row: Row, match: Written) -> Decision:
        if replay.ordered and row.key is not None and not in_order(match):
            diverged.add(place(row))
        return Decision.CORRECT if place(row) in diverged else Decision.DROP

    def drop_or_write(row: Row) -> Decision:
        of_partition = [one for one in replay.written if _of_partition(one.row, row)]
        if replay.compacted and row.key is not None:
            has_key = any(one.key == row.key for one in replay.written)
            if has_key and any(_offset(one.row) >= _offset(row) for one in of_partition):
                return Decision.DROP
        later = any(one.key == row.key and _offset(one.row) > _offset(row) for one in of_partition)
        if replay.ordered and row.key is not None and later:
            diverged.add(place(row))
        return Decision.WRITE

    def free_ordinal(row: Row, ordinals: set[int]) -> int:
        free = _ordinal(row)
        if free in ordinals:
            free = min(set(range(len(ordinals) + 1)) - ordinals)
        if ordinals:
            ordinals.add(free)
        return free

    decided: list[Decided] = []
    finished: list[Decided] = []
    numbered = list(enumerate(replay.rows, 1))
    groups = [list(group) for _, group in groupby(numbered, lambda one: one[1].identity and one[1].identity.record)]
    for number, group in enumerate(groups):
        unmatched = latest_versions(group[0][1])
        ordinals = {_ordinal(one.row) for one in unmatched}
        matches: list[Written | None] = []
        full_at = None
        for at, row in group:
            match = next((one for one in unmatched if one.row.content == row.content and one.key == row.key), None)
            if match is not None:
                unmatched.remove(match)
            matches.append(match)
            if not unmatched and full_at is None:
                full_at = at
        # The rows of a record are decided together: when all that are in the output have been seen, or the next comes.
        next_at = groups[number + 1][0][0] if number + 1 < len(groups) else None
        for (at, row), match in zip(group, matches, strict=True):
            found = match or (unmatched.pop(0) if unmatched and replay.same_query else None)
            decision = drop_or_correct(row, found) if found else drop_or_write(row)
            ordinal = _ordinal(found.row) if found else free_ordinal(row, ordinals)
            if full_at is not None:
                decided.append(Decided(row, decision, max(at, full_at), ordinal))
            elif next_at is not None:
                decided.append(Decided(row, decision, next_at, ordinal))
            else:
                finished.append(Decided(row, decision, len(replay.rows), ordinal))
    return Answer(tuple(decided), tuple(finished))


def _made_by_time(row: Row) -> tuple[int, int] | None:
    return None if row.identity else (row.task, row.epoch)


def _ordinal(row: Row) -> int:
    return row.identity.ordinal if row.identity else 0


def _partition(row: Row) -> int:
    assert row.identity is not None
    return row.identity.partition


def _offset(row: Row) -> int:
    assert row.identity is not None
    return row.identity.offset


def _of_partition(one: Row, other: Row) -> bool:
    if one.identity is None or other.identity is None:
        return False
    return (one.identity.source, one.identity.partition) == (other.identity.source, other.identity.partition)
