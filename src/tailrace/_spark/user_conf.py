"""The user's Spark settings from the builder, the command line and files."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home

from tailrace.errors import TailraceError


def user_conf(builder_options: Mapping[str, Any]) -> dict[str, str]:
    """In Spark's order: the builder overrides the command line, which overrides spark-defaults.conf."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has already read the files and the command line into its JVM.
        conf = _from_running_jvm()
    else:
        conf = {**conf_of_defaults_file(), **conf_of_arguments(_submit_arguments())}
    conf.update({key: str(value) for key, value in builder_options.items()})
    return conf


def _submit_arguments() -> list[str]:
    try:
        return shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    except ValueError as wrong:
        raise _not_understood(f"the environment variable PYSPARK_SUBMIT_ARGS cannot be taken apart: {wrong}") from None


def _not_understood(problem: str) -> TailraceError:
    return TailraceError(
        "TAILRACE_BAD_ARGUMENT", f"{problem.rstrip('.')}.", "correct the arguments; `spark-submit --help` lists them."
    )


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # Its own would print a usage that is not ours, and end the application.
        raise _not_understood(f"spark-submit's arguments are wrong: {message}")


def _from_running_jvm() -> dict[str, str]:
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    assert jvm is not None
    return {entry._1(): entry._2() for entry in jvm.org.apache.spark.SparkConf().getAll()}


def conf_of_defaults_file() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    return _from_properties(Path(folder) / "spark-defaults.conf")


def _from_properties(file: Path) -> dict[str, str]:
    """Read a file in Java's properties syntax, as Spark does: space, tab, = or : separates key and value."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # no such file, or a name that cannot be one
        return {}
    joined = re.sub(r"\\\r?\n\s*", "", text)
    lines = (line.strip() for line in joined.splitlines())
    pairs = (re.match(r"([^\s=:]+)\s*[=:\s]?\s*(.*)", line) for line in lines if line and line[0] not in "#!")
    return {pair[1]: pair[2] for pair in pairs if pair}


def conf_of_arguments(arguments: list[str]) -> dict[str, str]:
    """The settings in the arguments of spark-submit."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--conf", "-c", action="append", default=[])
    parser.add_argument("--properties-file", type=Path)
    flags = {
        "--jars": "spark.jars",
        "--master": "spark.master",
        "--packages": "spark.jars.packages",
        "--repositories": "spark.jars.repositories",
    }
    for flag, key in flags.items():
        parser.add_argument(flag, dest=key)
    known, _ = parser.parse_known_args(arguments)
    conf = _from_properties(known.properties_file) if known.properties_file else {}
    conf.update(pair.split("=", 1) for pair in known.conf if "=" in pair)
    conf.update({key: value for key in flags.values() if (value := getattr(known, key)) is not None})
    return conf
