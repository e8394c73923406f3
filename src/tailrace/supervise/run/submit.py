"""The spark-submit command of a run, with what `configure` would be too late for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home

from tailrace._spark.driver_jvm import OPTIONS_KEY, driver_options
from tailrace._spark.user_conf import conf_of_arguments, conf_of_defaults_file
from tailrace.errors import TailraceError
from tailrace.supervise.run.arguments import Arguments
from tailrace.supervise.run_folder import FOLDER_VARIABLE


def command_of(arguments: Arguments) -> list[str]:
    """spark-submit, its arguments, ours behind them where the last one counts, and the application."""
    options = driver_options(conf_of(arguments))
    ours = ["--driver-java-options", options[OPTIONS_KEY]] if options else []
    return [str(spark_submit()), *arguments.submit, *ours, arguments.script, *arguments.script_arguments]


def spark_submit() -> Path:
    """Of SPARK_HOME if that is set, else of the installed PySpark."""
    submit = Path(_find_spark_home()) / "bin" / "spark-submit"
    if not submit.is_file():
        raise TailraceError(
            "TAILRACE_SPARK_NOT_STARTED",
            f"there is no {submit}.",
            "unset SPARK_HOME to use the installed PySpark, or point it at a Spark 4.3.",
        )
    return submit


def conf_of(arguments: Arguments) -> dict[str, str]:
    """What the user has set for the application, as far as it is known before it runs."""
    conf = {**conf_of_defaults_file(), **conf_of_arguments(arguments.submit)}
    for options in arguments.values_of("--driver-java-options"):
        conf[OPTIONS_KEY] = options
    return conf


def environment_of(folder: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Ours, with the folder for the application's notes, and with the interpreter that runs us."""
    environment = {**os.environ, FOLDER_VARIABLE: str(folder)}
    chosen = "spark.pyspark.driver.python" in conf or "spark.pyspark.python" in conf
    if not chosen and not {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"} & set(environment):
        # spark-submit would take whatever `python3` is on the PATH.
        environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # What the application prints is to be seen when it prints it.
    environment.setdefault("PYTHONUNBUFFERED", "1")
    return environment
