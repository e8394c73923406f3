from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", redis_client=True)
