"""Measure what is left of an epoch boundary when epochs overlap: on and off in turns, in one JVM.

Each turn is a fresh query with epochs of ten seconds. The silence at a boundary is the longest gap in the output around
it; the control is the same figure in the middle of the epochs, where neither a boundary nor planning disturbs. A
silence below 20 ms counts as 20. Prints the table of docs/benchmarks/epoch-boundaries.md, and whether the bar holds.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import tailrace
from benchmarks.common import PARTITIONS, print_table, spread
from benchmarks.one_jvm import in_a_jvm
from benchmarks.overlap_turns import ON, Turns
from tailrace.loadtest.machine import describe_machine
from tailrace.loadtest.report import LABELS

STATELESS, PYTHON, AGGREGATION, PYTHON_STATE = "stateless", "python udf", "keyed aggregation", "python state"
JOIN, SESSION = "join", "session"
QUERIES = (STATELESS, PYTHON, AGGREGATION, PYTHON_STATE, JOIN, SESSION)
WARM_UP_EPOCHS = 40
# Of the silence in the middle of an epoch.
BAR = 1.5
# With state, the rows after a boundary wait for those before it.
STATE_BARS_MS = {AGGREGATION: 30, PYTHON_STATE: 50, JOIN: 60, SESSION: 60}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=65, help="of each turn")
    parser.add_argument("--epoch", type=int, default=10, help="seconds")
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=WARM_UP_EPOCHS, help="short epochs before the first turn")
    parser.add_argument(
        "--query", action="append", choices=QUERIES, type=spaced, help="more than once for several; also python-state"
    )
    options = parser.parse_args()
    with tailrace.EmbeddedKafka() as kafka:
        work = Turns(
            kafka.bootstrap_servers,
            tuple(options.query or QUERIES),
            # The short epochs of the warm-up overlap too.
            settings={"spark.tailrace.testing.overlapShortestMs": "1000"},
            # In two epochs at once, for the two sources and the second stage of a join.
            slots=6 * PARTITIONS + 1,
            epoch_s=options.epoch,
            seconds=options.seconds,
            rate=options.rate,
            warm_up_epochs=options.warm_up,
            rounds=options.rounds,
        )
        turns = list(in_a_jvm(work, module="benchmarks.overlap_turns"))
    print(
        f"{options.rate} rows/s, epochs of {options.epoch} s, {options.rounds} turns of {options.seconds} s each, "
        f"after {options.warm_up} short epochs. {describe_machine()}.\n"
    )
    print_turns(turns)
    print_bars(turns)


def spaced(name: str) -> str:
    """Names need no quotes in a shell."""
    return name.replace("-", " ")


def print_turns(turns: list[dict[str, Any]]) -> None:
    print_table(
        [
            "",
            "silence at boundaries, ms: median [least–most]",
            "control, ms",
            "boundaries, overlapped",
            *LABELS.values(),
            "lost",
            "duplicates",
        ],
        (
            [
                f"{turn['query']}, overlap {turn['overlap']}",
                spread(turn["pauses_ms"]),
                spread(turn["control_ms"]),
                f"{len(turn['pauses_ms'])}, {turn['overlapped']}",
                *(f"{turn[name]:.1f}" for name in LABELS),
                str(turn["lost"]),
                str(turn["duplicates"]),
            ]
            for turn in turns
        ),
    )


def print_bars(turns: list[dict[str, Any]]) -> None:
    def median(query: str, overlap: str, figure: str) -> float:
        found = [one for turn in turns if (turn["query"], turn["overlap"]) == (query, overlap) for one in turn[figure]]
        return float(statistics.median(found))

    rows: list[tuple[str, float, float]] = []
    for query in dict.fromkeys(turn["query"] for turn in turns):
        silence_ms = median(query, ON, "pauses_ms")
        if query in STATE_BARS_MS:
            rows.append((f"{query}: silence at boundaries, ms", silence_ms, STATE_BARS_MS[query]))
        else:
            ratio = silence_ms / median(query, ON, "control_ms")
            rows.append((f"{query}: silence at boundaries / in the middle of epochs", ratio, BAR))
    print_table(
        ["", "measured", "bar", ""],
        ([what, f"{value:.2f}", f"≤ {bar}", "holds" if value <= bar else "missed"] for what, value, bar in rows),
    )


if __name__ == "__main__":
    main()
