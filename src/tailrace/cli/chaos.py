"""`tailrace chaos`."""

from __future__ import annotations

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailrace._kafka.cluster import Servers, cluster_of
from tailrace._process.arguments import require_seconds
from tailrace._process.console import SafeConsole, console
from tailrace.chaos import ChaosOptions, ChaosView, UsersQuery, report, run_chaos
from tailrace.chaos.faults import FAULTS
from tailrace.chaos.pieces import pieces
from tailrace.chaos.result import failure_texts
from tailrace.chaos.run import plan
from tailrace.chaos.state_file import has_state, load
from tailrace.chaos.workloads import SINKS, STORES, USUAL, WORKLOADS, refuse_not_in_stores
from tailrace.cli.kafka_config import KafkaConfig
from tailrace.errors import TailraceError

ALL = "all"
STORE_FORMATS = tuple(f"tailrace-{store}" for store in STORES)


class Workloads(StrEnum):
    all = ALL
    stateless = "stateless"
    python = "python"
    aggregation = "aggregation"
    dedup = "dedup"
    processor = "processor"
    session = "session"
    # Not named `join`, which is a method of str.
    stream_join = "join"
    extremes = "extremes"
    firsts = "firsts"
    timers = "timers"
    two_shuffles = "two-shuffles"
    two_sources = "two-sources"
    compacted = "compacted"
    compacted_extremes = "compacted-extremes"
    shared = "shared"
    changing = "changing"


def chaos(
    context: typer.Context,
    script: Annotated[
        Path | None,
        typer.Argument(help="Your own script, instead of the built-in queries.", exists=True, dir_okay=False),
    ] = None,
    arguments: Annotated[list[str] | None, typer.Argument(help="The script's own arguments.")] = None,
    rounds: Annotated[int, typer.Option(min=0, help="Number of faults.")] = 20,
    piece: Annotated[
        int,
        typer.Option(min=1, help="Compare output with input after this many rounds, then continue with fresh topics."),
    ] = ChaosOptions.piece,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the state in this folder, and continue the run that is there."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Start no further round after this many seconds.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the schedule. The same seed gives the same schedule.")] = 7,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="Only this fault. May be repeated.", show_default=ALL, callback=lambda names: _known(names)),
    ] = None,
    workload: Annotated[
        list[Workloads] | None,
        typer.Option(help="Which built-in query to run. May be repeated.", show_default=", ".join(USUAL)),
    ] = None,
    sink: Annotated[
        str,
        typer.Option(
            help="Where the built-in queries write: `kafka`, `tailrace-kafka`, `both` of these, or `postgresql` or "
            "`redis` on an embedded server."
        ),
    ] = "kafka",
    rate: Annotated[int, typer.Option(min=10, max=5000, help="Records per second.")] = 100,
    epoch: Annotated[
        int | None,
        typer.Option(
            min=5,
            help="Epoch length of the built-in queries, in seconds.",
            show_default="5; in long runs also 30",
        ),
    ] = None,
    bootstrap_servers: Annotated[str | None, typer.Option(help="Your script's broker.")] = None,
    kafka_config: KafkaConfig = None,
    input_topic: Annotated[str | None, typer.Option("--input", help="The topic your query reads.")] = None,
    output_topic: Annotated[str | None, typer.Option("--output", help="The topic your query writes.")] = None,
    id_field: Annotated[str, typer.Option(help="The JSON field with the record's number, in input and output.")] = "id",
    record: Annotated[str, typer.Option(help="Template of an input record, with $id and $key.")] = UsersQuery.template,
    exactly_once: Annotated[bool, typer.Option("--exactly-once", help="Your query promises no duplicates.")] = False,
    reference: Annotated[
        bool,
        typer.Option(
            help="Run your query twice more, in micro-batch and without a fault, and compare values and order."
        ),
    ] = True,
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds without a new row before missing rows count as lost.")
    ] = 60,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the schedule.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")] = False,
) -> None:
    """Inject faults into a running query, and compare its output with every record sent.

    Without a script, built-in queries run on an embedded broker. Your own script must run its query from a
    checkpoint until it is killed. It is killed and restarted, and must answer every record in the output topic.
    Exit code 0 if the output is what the sink promises, 1 if not.
    """
    require_seconds("--seconds", seconds or 0)
    require_seconds("--patience", patience)
    sinks = SINKS if sink == "both" else (sink.removeprefix("tailrace-") if sink in STORE_FORMATS else sink,)
    options = ChaosOptions(
        rounds=rounds,
        piece=piece,
        seconds=seconds,
        seed=seed,
        workloads=_chosen(workload, sinks),
        sinks=sinks,
        faults=tuple(fault or ()),
        rate=rate,
        epoch_s=epoch,
        patience_s=patience,
        yours=_users_query(
            script,
            arguments,
            cluster_of(bootstrap_servers, kafka_config),
            input_topic,
            output_topic,
            id_field,
            record,
            exactly_once,
            reference,
        ),
    )
    if resume is not None:
        options = _resumed(context, resume, options)
    if options.yours is None:
        refuse_not_in_stores(options.workloads, options.sinks)
    if dry_run:
        for each in pieces(options):
            for planned in plan(each)[0]:
                print(planned)
        return
    result = run_chaos(options, ChaosView(console), resume)
    if as_json:
        print(json.dumps(report.to_dict(result), indent=2))
    else:
        report.show(result, SafeConsole())
    if result.failures:
        raise TailraceError(
            "TAILRACE_GUARANTEE_BROKEN",
            "\n".join(failure_texts(result)),
            f"repeat a failure with the command below it; logs and summary are in {result.folder}",
        )


# What may differ from the command that began a run; the rest is as it was.
OF_EACH_COMMAND = {"context", "resume", "rounds", "seconds", "patience", "dry_run", "as_json"}


def _resumed(context: typer.Context, folder: Path, options: ChaosOptions) -> ChaosOptions:
    """The options of the run in the folder, if there is one."""
    if options.yours is not None:
        raise typer.BadParameter("--resume is for the built-in queries: a script's topics are compared as a whole.")
    if not has_state(folder):
        return options
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    before = load(folder).options
    # The same command again, with all its options, continues as well.
    changed = [name for name in given - OF_EACH_COMMAND if _differs(name, options, before)]
    if changed:
        raise typer.BadParameter(
            f"the run in {folder} began with another --{changed[0]}; omit it, or name another folder."
        )
    rounds = options.rounds if "rounds" in given else before.rounds
    return replace(before, rounds=rounds, seconds=options.seconds, patience_s=options.patience_s)


def _differs(name: str, options: ChaosOptions, before: ChaosOptions) -> bool:
    field = {"workload": "workloads", "sink": "sinks", "fault": "faults", "epoch": "epoch_s"}.get(name, name)
    return bool(getattr(options, field, None) != getattr(before, field, None))


def _chosen(workloads: list[Workloads] | None, sinks: tuple[str, ...]) -> tuple[str, ...]:
    if workloads and Workloads.all in workloads:
        in_store = any(sink in STORES for sink in sinks)
        return tuple(name for name, each in WORKLOADS.items() if not (in_store and each.not_in_stores))
    return tuple(dict.fromkeys(each.value for each in workloads)) if workloads else USUAL


def _users_query(
    script: Path | None,
    arguments: list[str] | None,
    cluster: Servers | None,
    input_topic: str | None,
    output_topic: str | None,
    id_field: str,
    template: str,
    exactly_once: bool,
    reference: bool,
) -> UsersQuery | None:
    if script is None:
        return None
    if cluster is None or input_topic is None or output_topic is None:
        raise typer.BadParameter(
            "a script needs --bootstrap-servers or --kafka-config, --input and --output before it."
        )
    return UsersQuery(
        script,
        tuple(arguments or ()),
        cluster,
        input_topic,
        output_topic,
        id_field=id_field,
        template=template,
        exactly_once=exactly_once,
        reference=reference,
    )


def _known(names: list[str] | None) -> list[str] | None:
    for name in names or []:
        if name not in FAULTS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(FAULTS)}.")
    return names
