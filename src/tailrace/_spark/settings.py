"""Tailrace's own settings. The plugin declares them (`TailraceConf`); Python reads them from there."""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.captured import CapturedException
from pyspark.sql import SparkSession

from tailrace._spark.plugin import SETTINGS_CLASS, jvm_object
from tailrace._spark.support import printed_by
from tailrace.errors import TailraceError

PRINTER_CLASS = "org.apache.spark.sql.tailrace.conf.PrintSettings"


@dataclass(frozen=True)
class Setting:
    """One setting. `doc` is empty if the setting is not for users."""

    key: str
    kind: str
    default: str | None
    scope: str
    doc: str
    page: str
    allowed: str


def settings_registry() -> list[Setting]:
    return [Setting(**row) for row in printed_by(PRINTER_CLASS)]


def value_of(spark: SparkSession, key: str) -> str | None:
    """The value in the session, or the default; None without one. An invalid value raises TAILRACE_BAD_SETTING."""
    try:
        value = jvm_object(spark.sparkContext, SETTINGS_CLASS).textOf(spark._jsparkSession, key)
    except (Py4JError, CapturedException) as failure:
        stated = TailraceError.find_in(str(failure))
        if stated is not None:
            raise stated from None
        raise
    return None if value is None else str(value)


def required_value_of(spark: SparkSession, key: str) -> str:
    """The value of a setting that has a default."""
    value = value_of(spark, key)
    if value is None:
        raise KeyError(key)
    return value
