"""Whose argument is it: ours, spark-submit's, or the application's."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tailrace.errors import TailraceError

# All that spark-submit 4.3 has; what it gains later is told apart by looking at what follows.
SUBMIT_FLAGS = frozenset({"--verbose", "-v", "--version", "--supervise", "--usage-error"})
# fmt: off
SUBMIT_OPTIONS = frozenset({
    "--archives", "--class", "--conf", "-c", "--deploy-mode", "--driver-class-path", "--driver-cores",
    "--driver-java-options", "--driver-library-path", "--driver-memory", "--exclude-packages", "--executor-cores",
    "--executor-memory", "--files", "--jars", "--keytab", "--kill", "--master", "--name", "--num-executors",
    "--packages", "--principal", "--properties-file", "--proxy-user", "--py-files", "--queue", "--remote",
    "--repositories", "--status", "--total-executor-cores",
})
# fmt: on


@dataclass(frozen=True)
class Arguments:
    """A command line, taken apart."""

    own: list[str]
    submit: list[str]
    script: str
    script_arguments: list[str]

    def values_of(self, *options: str) -> Iterator[str]:
        """What follows an option of spark-submit's, each time that it is given."""
        for position, word in enumerate(self.submit):
            name, equals, value = word.partition("=")
            if name in options and name.startswith("--") and equals:
                yield value
            elif word in options and position + 1 < len(self.submit):
                yield self.submit[position + 1]


def take_apart(words: list[str], own_options: Collection[str], own_flags: Collection[str]) -> Arguments:
    """The script is the first word that belongs to no option; what follows it is the application's."""
    own: list[str] = []
    submit: list[str] = []
    position = 0
    while position < len(words) and words[position].startswith("-"):
        word = words[position]
        name = word.partition("=")[0]
        is_own = name in own_options or name in own_flags
        takes_next = "=" not in word and _takes_value(word, words[position + 1 : position + 2], own_options, own_flags)
        (own if is_own else submit).extend(words[position : position + 1 + takes_next])
        position += 1 + takes_next
    script = words[position] if position < len(words) else ""
    return Arguments(own, submit, script, words[position + 1 :])


def _takes_value(word: str, following: list[str], own_options: Collection[str], own_flags: Collection[str]) -> bool:
    if word in own_options or word in SUBMIT_OPTIONS:
        return True
    if word in own_flags or word in SUBMIT_FLAGS:
        return False
    # Unknown here: if the next word is neither an option nor a script, it can only be its value.
    return any(not one.startswith("-") and not one.endswith(".py") for one in following)


def refuse_what_cannot_be_supervised(arguments: Arguments) -> None:
    if "cluster" in arguments.values_of("--deploy-mode") or any(
        value.replace(" ", "") == "spark.submit.deployMode=cluster" for value in arguments.values_of("--conf", "-c")
    ):
        raise TailraceError(
            "TAILRACE_NOT_SUPERVISED",
            "in cluster mode the driver runs on another machine, where this command cannot watch it.",
            "remove --deploy-mode cluster, and run this command where the driver is to run, such as in a container.",
        )
    if any(True for _ in arguments.values_of("--remote")):
        raise TailraceError(
            "TAILRACE_CONNECT_NOT_SUPPORTED",
            "--remote makes a Spark Connect session; Tailrace extends the engine and needs the classic one.",
            "use --master instead of --remote.",
        )
