"""Measure the stateful operators: latency, throughput, the cost of a million keys, and how late timers fire.

Compared variants run in turns within one run. `--quick` only shows that everything works; its figures mean nothing.
"""

from __future__ import annotations

import argparse
from types import ModuleType

import tailrace
from benchmarks import stateful_keys, stateful_latency, stateful_throughput, stateful_timers
from tailrace.loadtest.machine import describe_machine

PARTS: dict[str, ModuleType] = {
    "latency": stateful_latency,
    "throughput": stateful_throughput,
    "keys": stateful_keys,
    "timers": stateful_timers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a little of everything, as a test")
    arguments = parser.parse_args()
    if arguments.quick:
        print("A quick test: these figures mean nothing.\n")
    for name in arguments.only:
        part = PARTS[name]
        plan = part.Plan.quick() if arguments.quick else part.Plan()
        print(f"## Stateful operators: {name}\n", flush=True)
        with tailrace.EmbeddedKafka() as kafka:
            part.print_tables(kafka, plan)
        print(f"{part.method(plan)}\n\nMachine: {describe_machine()}.\n", flush=True)


if __name__ == "__main__":
    main()
