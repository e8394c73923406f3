"""Hundreds of thousands of inputs for the parsers that read from outside."""

from __future__ import annotations

import pytest

from tests.helpers.parsers import PARSERS
from tests.unit.test_fuzz import try_parser

EXAMPLES = 300_000 // len(PARSERS)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", PARSERS)
def test_whatever_comes_is_read_or_refused_with_a_code(name: str) -> None:
    try_parser(name, EXAMPLES)
