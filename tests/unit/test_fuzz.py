"""Some thousand inputs for each parser that reads from outside; `tests/chaos/test_fuzz.py` tries many more."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.parsers import PARSERS

EXAMPLES = 100


@pytest.mark.parametrize("name", PARSERS)
def test_whatever_comes_is_read_or_refused_with_a_code(name: str) -> None:
    try_parser(name, EXAMPLES)


def try_parser(name: str, examples: int) -> None:
    parser = PARSERS[name]

    @settings(
        max_examples=examples,
        # A hang shows: no input may take longer, even on a busy machine.
        deadline=20_000,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def accepts_or_refuses(data: st.DataObject) -> None:
        parser.accepts_or_refuses(data.draw(parser.inputs))

    accepts_or_refuses()
