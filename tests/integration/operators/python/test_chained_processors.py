"""Several Python processors in one query, each with its own state; the same in both modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from tailrace.testing import Mode, StreamTest


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[8]")


class Numbered(StatefulProcessor):
    """The rows of a card, counted."""

    def init(self, handle: Any) -> None:
        self.seen = handle.getValueState("state", "rows INT")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            count = (self.seen.get() or (0,))[0] + 1
            self.seen.update((count,))
            yield Row(card=key[0], shop=row.shop, number=count)


class FirstVisits(StatefulProcessor):
    """How many cards were in a shop as the first thing that they did. Its state has the name of the other one's."""

    def init(self, handle: Any) -> None:
        self.cards = handle.getListState("state", "card STRING")

    def handleInputRows(self, key: Any, frames: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        for frame in frames:
            for row in frame.itertuples():
                if row.number == 1:
                    self.cards.appendValue((row.card,))
                    yield pd.DataFrame({"shop": [key[0]], "cards": [len(list(self.cards.get()))]})


def first_visits(payments: DataFrame) -> DataFrame:
    numbered = payments.groupBy("card").transformWithState(
        Numbered(), "card STRING, shop STRING, number INT", "Update", "None"
    )
    return numbered.groupBy("shop").transformWithStateInPandas(
        FirstVisits(), "shop STRING, cards INT", "Update", "None"
    )


@pytest.mark.parametrize("mode", ["real-time", pytest.param("micro-batch", marks=pytest.mark.chaos)])
def test_one_behind_the_other(spark: SparkSession, mode: Mode) -> None:
    with StreamTest(spark, mode) as test:
        payments = test.source("card STRING, shop STRING")
        visits = test.start(first_visits(payments.rows))
        payments.add(("a", "x"), ("a", "y"), ("b", "x"))
        test.process()
        assert visits.latest("shop") == {"x": 2}
        test.restart()
        payments.add(("a", "y"), ("c", "y"), ("d", "x"))
        test.process()
        assert visits.latest("shop") == {"x": 3, "y": 1}
