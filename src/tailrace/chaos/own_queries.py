"""The built-in queries of a piece: what the driver is told to run, and when its code or its topic was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tailrace.chaos._settings import WantedQuery, checkpoint_of, write_wanted
from tailrace.chaos.changes import Change, committed_offsets, last_commit
from tailrace.chaos.workloads import WORKLOADS, QueryName

# Warm starts commit after a second: they would end every long epoch.
MOST_FOR_WARM_UP_S = 10


class OwnQueries:
    """:param outputs: the output topics of each query. It begins with the first, and may be changed to the others.
    :param sink_options: of the outputs that are in a store.
    """

    def __init__(
        self,
        folder: Path,
        input_topic: str,
        outputs: Mapping[str, tuple[str, ...]],
        *,
        epoch_s: int,
        sink_options: Mapping[str, dict[str, str]],
    ) -> None:
        self.folder = folder
        self.input_topic = input_topic
        self._outputs = outputs
        self._commits: dict[str, int] = {}
        self._in_a_row: dict[str, int] = {}
        self.wanted = {
            query: WantedQuery(
                input_topic,
                topics[0],
                str(checkpoint_of(folder, query)),
                epoch_s=epoch_s,
                warm_up=False,
                sink_options=sink_options.get(topics[0], {}),
            )
            for query, topics in outputs.items()
        }
        self.changes = {query: [Change(0, topics[0], {})] for query, topics in outputs.items()}

    def want(self) -> None:
        write_wanted(self.folder, self.wanted)

    def want_none(self) -> None:
        write_wanted(self.folder, {})

    def restart(self, *, epoch_s: int | None = None) -> None:
        """The driver stops each query and starts it again; a driver that is killed only starts them."""
        for query, spec in self.wanted.items():
            longer = epoch_s or spec.epoch_s
            # In turn: with it commits are many, without it much is open when the next blow falls.
            warm_up = not spec.warm_up and longer <= MOST_FOR_WARM_UP_S
            self.wanted[query] = replace(spec, run=spec.run + 1, epoch_s=longer, warm_up=warm_up)
        self.want()

    def changing(self) -> list[str]:
        """The queries whose code and topic can be changed."""
        return [query for query in self.wanted if WORKLOADS[QueryName.parse(query).workload].versions > 1]

    def without(self, query: str) -> None:
        """The driver stops a query and keeps the others."""
        write_wanted(self.folder, {name: spec for name, spec in self.wanted.items() if name != query})

    def change(self, query: str, *, code: bool) -> None:
        """Another version of the code, or else another topic. The query must have been stopped."""
        spec = self.wanted[query]
        if code:
            changed = replace(spec, version=(spec.version + 1) % WORKLOADS[QueryName.parse(query).workload].versions)
        else:
            topics = self._outputs[query]
            changed = replace(spec, output_topic=topics[(topics.index(spec.output_topic) + 1) % len(topics)])
        self._now(query, changed)

    def change_back(self, query: str) -> None:
        """A change that was refused. The query must have been stopped, or have ended."""
        before = self.changes[query][-2]
        self._now(query, replace(self.wanted[query], version=before.version, output_topic=before.topic))

    def _now(self, query: str, spec: WantedQuery) -> None:
        committed = committed_offsets(Path(spec.checkpoint), self.input_topic)
        self.changes[query].append(Change(spec.version, spec.output_topic, committed))
        self.wanted[query] = replace(spec, run=spec.run + 1)
        self.want()

    def commits(self) -> dict[str, int]:
        return {query: last_commit(Path(spec.checkpoint)) for query, spec in self.wanted.items()}

    def have_committed(self, query: str, ends: Mapping[int, int]) -> bool:
        """Whether a query has committed all records before these offsets."""
        committed = committed_offsets(Path(self.wanted[query].checkpoint), self.input_topic)
        return all(committed.get(partition, 0) >= end for partition, end in ends.items())

    def note_fault(self) -> int:
        """The faults in a row, with the one that is about to strike, since a query's last commit; the most of any."""
        commits = self.commits()
        for query, number in commits.items():
            again = self._commits.get(query) == number
            self._in_a_row[query] = self._in_a_row.get(query, 0) + 1 if again else 1
        self._commits = commits
        return max(self._in_a_row.values())
