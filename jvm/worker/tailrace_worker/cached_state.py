"""Replaces PySpark's state variables with cached ones; see `EpochStateClient`."""

from __future__ import annotations

import importlib
from typing import Any

from tailrace_worker.cached_list import CachedList
from tailrace_worker.cached_map import CachedMap
from tailrace_worker.cached_value import CachedValue


def install_cached_state() -> None:
    """Make the processors of this process use cached variables."""
    api: Any = importlib.import_module("pyspark.sql.streaming.stateful_processor")
    api.ValueStateClient = CachedValue
    api.ListStateClient = CachedList
    api.MapStateClient = CachedMap
    api.ListStateIterator = CachedList.iterate
    api.MapStateIterator = CachedMap.iterate_keys_or_values
    api.MapStateKeyValuePairIterator = CachedMap.iterate_pairs
