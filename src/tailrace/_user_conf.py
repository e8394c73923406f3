"""What the user has already set for Spark, wherever it was said, so that we can merge with it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home


def user_conf(builder_options: Mapping[str, Any]) -> dict[str, str]:
    """Spark's own order: the builder over the command line over spark-defaults.conf."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has already read the files and the command line into its JVM.
        conf = _from_running_jvm()
    else:
        conf = {**_from_defaults_file(), **_from_submit_arguments()}
    conf.update({key: str(value) for key, value in builder_options.items()})
    return conf


def _from_running_jvm() -> dict[str, str]:
    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    assert jvm is not None
    return {entry._1(): entry._2() for entry in jvm.org.apache.spark.SparkConf().getAll()}


def _from_defaults_file() -> dict[str, str]:
    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home()) / "conf"
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    conf = {}
    for line in map(str.strip, lines):
        if line and not line.startswith("#"):
            key, _, value = line.replace("=", " ", 1).partition(" ") if " " not in line else line.partition(" ")
            conf[key] = value.strip()
    return conf


def _from_submit_arguments() -> dict[str, str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--conf", "-c", action="append", default=[])
    flags = {"--jars": "spark.jars", "--packages": "spark.jars.packages", "--repositories": "spark.jars.repositories"}
    for flag, key in flags.items():
        parser.add_argument(flag, dest=key)
    known, _ = parser.parse_known_args(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    conf = dict(pair.split("=", 1) for pair in known.conf if "=" in pair)
    conf.update({key: value for key in flags.values() if (value := getattr(known, key)) is not None})
    return conf
