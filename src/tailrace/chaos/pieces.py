"""A long run in pieces: each has fresh topics, a few queries, a seed of its own, and a verdict."""

from __future__ import annotations

import itertools
import math
import shlex
from dataclasses import replace

from tailrace.chaos.options import ChaosOptions

# Few enough for two cores to start them in seconds.
MOST_TOGETHER = 4
SHORT_EPOCH_S = 5
# Longer than several faults in a row take: the third run replays what the second one changed.
LONG_EPOCH_S = 30


def pieces(options: ChaosOptions) -> list[ChaosOptions]:
    """The pieces of a run, each as the options that repeat it.

    They take turns with groups of queries, and after each turn of all groups with short and long epochs. A run of one
    piece has all queries. A longer run of the same seed begins with the shorter one, if both have several pieces.
    """
    if options.yours is not None or options.rounds <= options.piece:
        return [replace(options, epoch_s=options.epoch_s or SHORT_EPOCH_S)]
    groups = [
        (options.workloads[start : start + MOST_TOGETHER], sink)
        for sink in options.sinks
        for start in range(0, len(options.workloads), MOST_TOGETHER)
    ]
    found = []
    for number in range(math.ceil(options.rounds / options.piece)):
        turn, place = divmod(number, len(groups))
        workloads, sink = groups[place]
        found.append(
            replace(
                options,
                rounds=min(options.piece, options.rounds - number * options.piece),
                seed=options.seed + number,
                workloads=workloads,
                sinks=(sink,),
                epoch_s=options.epoch_s or (LONG_EPOCH_S if turn % 2 else SHORT_EPOCH_S),
                seconds=None,
            )
        )
    return found


def repeat_command(piece: ChaosOptions) -> str:
    """The command that repeats a piece. A user's own query is repeated with the user's own command."""
    words: list[str | int] = ["tailrace", "chaos", "--rounds", piece.rounds, "--seed", piece.seed]
    if piece.rounds > ChaosOptions.piece:
        words += ["--piece", piece.rounds]
    words += ["--epoch", piece.epoch_s or SHORT_EPOCH_S]
    if piece.rate != ChaosOptions.rate:
        words += ["--rate", piece.rate]
    if piece.yours is None:
        words += ["--sink", piece.sinks[0] if len(piece.sinks) == 1 else "both"]
        words += itertools.chain.from_iterable(("--workload", each) for each in piece.workloads)
    words += itertools.chain.from_iterable(("--fault", each) for each in piece.faults)
    return shlex.join(map(str, words))
