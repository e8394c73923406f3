"""The order of a query's stages in a picture: each stage right before the one it sends its rows to."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tailrace.check.description import QueryShape
from tailrace.contract.query_description import Stage


@dataclass(frozen=True)
class Place:
    """A stage, its layer (counted from the sources), and the columns that it and its inputs take up."""

    stage: Stage
    inputs: tuple[int, ...]
    feeds: tuple[int, ...]
    """The stages that read its rows."""
    layer: int
    column: int
    columns: int

    @property
    def number(self) -> int:
        return self.stage.number


@dataclass(frozen=True)
class Layers:
    """All places, inputs before the stages that they feed."""

    places: tuple[Place, ...]

    @property
    def layers(self) -> int:
        return max((place.layer for place in self.places), default=-1) + 1

    @property
    def columns(self) -> int:
        return max((place.column + place.columns for place in self.places), default=0)

    @property
    def is_tree(self) -> bool:
        """No two connections cross if each stage feeds only one other."""
        return all(len(place.feeds) <= 1 for place in self.places)

    def in_layer(self, layer: int) -> list[Place]:
        return sorted((place for place in self.places if place.layer == layer), key=lambda place: place.column)

    def inputs_of(self, target: Place) -> list[Place]:
        return [place for place in self.places if place.number in target.inputs]

    def straight(self) -> set[int]:
        """The stages that get all their rows from the place right before theirs."""
        return {after.number for before, after in pairwise(self.places) if after.inputs == (before.number,)}


def layers_of(shape: QueryShape) -> Layers:
    return Layers(tuple(_Placing(shape).places()))


class _Placing:
    def __init__(self, shape: QueryShape) -> None:
        self._stages = {stage.number: stage for stage in shape.stages}
        self._inputs = {
            number: tuple(one for one in dict.fromkeys(stage.inputs) if one in self._stages)
            for number, stage in self._stages.items()
        }
        self._feeds = {
            number: tuple(other for other, inputs in self._inputs.items() if number in inputs)
            for number in self._stages
        }
        self._to_end: dict[int, int] = {}
        self._places: list[Place] = []

    def places(self) -> list[Place]:
        ends = [number for number, feeds in self._feeds.items() if not feeds]
        column = 0
        for end in ends:
            column += self._place(end, column)
        return self._places

    def _place(self, number: int, column: int) -> int:
        """Put a stage behind all its inputs, and return how many columns they take."""
        columns = 0
        for one in self._inputs[number]:
            if self._next(one) == number:
                columns += self._place(one, column + columns)
        columns = max(columns, 1)
        layer = max(map(self._steps_to_end, self._stages)) - self._steps_to_end(number)
        self._places.append(
            Place(self._stages[number], self._inputs[number], self._feeds[number], layer, column, columns)
        )
        return columns

    def _next(self, number: int) -> int:
        """The stage that it feeds in the next layer."""
        return max(self._feeds[number], key=self._steps_to_end)

    def _steps_to_end(self, number: int) -> int:
        if number not in self._to_end:
            self._to_end[number] = 1 + max(map(self._steps_to_end, self._feeds[number]), default=-1)
        return self._to_end[number]
