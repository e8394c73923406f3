"""The queries of a running application, as a picture for a terminal."""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tailrace._process import dashboards
from tailrace._process.http_client import dashboard_url, no_dashboard_at, read_url
from tailrace.contract.codec import from_json
from tailrace.contract.findings import Severity
from tailrace.contract.snapshot import Distribution, ExecutorFigures, PartitionFigures, QueryFigures, Snapshot
from tailrace.errors import TailraceError
from tailrace.monitor.epochs import pause_in_words
from tailrace.monitor.report import COLUMNS, LABELS
from tailrace.monitor.rolling import WINDOWS

ANSWERS_WITHIN_S = 5
STATUS_STYLES = {"running": "green", "starting": "cyan", "lagging": "yellow", "failed": "red", "ended": "dim"}
WORST_PARTITIONS = 5
LAST_SECOND = 1e11


class Feed:
    """Snapshots of an application, from its dashboard."""

    def __init__(self, url: str) -> None:
        self.url = dashboard_url(url)

    def snapshot(self) -> Snapshot:
        address = urllib.parse.urljoin(self.url, "/api/snapshot")
        try:
            snapshot = from_json(Snapshot, read_url(address, ANSWERS_WITHIN_S))
            _require_figures(snapshot)
            return snapshot
        except (OSError, ValueError, http.client.HTTPException) as failure:
            raise no_dashboard_at(self.url, failure) from None


def _require_figures(snapshot: Snapshot) -> None:
    """What the types do not say, and the picture relies on."""
    with_windows: list[Any] = list(snapshot.queries)
    for query in snapshot.queries:
        with_windows += [*query.partitions, *query.stages]
    if any(window not in one.windows for one in with_windows for window in WINDOWS):
        raise ValueError("figures are missing in its answer")
    if not 0 <= snapshot.at < LAST_SECOND:
        raise ValueError("the time in its answer cannot be")


def default_url(command: str = "top") -> str:
    """Of the one dashboard that is served on this machine."""
    served = dashboards.find()
    if len(served) == 1:
        return served[0].url
    if not served:
        raise TailraceError(
            "TAILRACE_NOTHING_TO_WATCH",
            "no application on this machine serves a dashboard.",
            f"call tailrace.dashboard(spark) in the application, or give an address: tailrace {command} URL.",
        )
    known = ", ".join(f"{one.url} ({one.application})" for one in served)
    raise TailraceError(
        "TAILRACE_NOTHING_TO_WATCH",
        f"several applications serve a dashboard: {known}.",
        f"say which: tailrace {command} {served[-1].url}",
    )


def picture(snapshot: Snapshot, window: str, query: str | None = None) -> RenderableType:
    """All queries, or those with a name or an id."""
    application = snapshot.application
    when = time.strftime("%H:%M:%S", time.localtime(snapshot.at))
    head = Text.from_markup(
        f"[bold]{escape(application.name)}[/]  [dim]{escape(application.id)} on {escape(application.master)}, {when}[/]"
    )
    shown = [one for one in snapshot.queries if query in (None, one.name, one.id, one.run_id)]
    if not shown:
        missing = "no real-time query is running yet" if query is None else f"there is no query '{query}'"
        return Group(head, Text(missing, style="dim"))
    parts: list[RenderableType] = [head, _machine(snapshot.executors)]
    for one in shown:
        parts += [Text(), *_query(one, window)]
    return Group(*parts)


def _machine(executors: Sequence[ExecutorFigures]) -> Text:
    described = [
        f"{one.id}: CPU {one.cpu_load or 0:.0%}, GC {one.gc_total_ms:.0f} ms (longest {one.gc_max_ms:.0f})"
        for one in executors[:4]
    ]
    more = [f"and {len(executors) - 4} more"] if len(executors) > 4 else []
    return Text("executors, last 10 s: " + "; ".join(described + more) if described else "", style="dim")


def _query(query: QueryFigures, window: str) -> list[RenderableType]:
    figures = query.windows[window]
    epoch = query.epoch
    style = STATUS_STYLES.get(query.status, "")
    lag = "unknown" if query.lag_rows is None else f"{query.lag_rows:,}"
    title = Text.from_markup(
        f"[bold]{escape(query.label)}[/]  [{style}]{query.status}[/]  "
        f"in {figures.rows_in_per_s:,.1f}/s  out {figures.rows_out_per_s:,.1f}/s  lag {lag}"
        + (f"  epoch {epoch.number}" if epoch.number is not None else "")
    )
    parts: list[RenderableType] = [title]
    if query.pause:
        parts.append(Text(f"pause between epochs {pause_in_words(query.pause)}", style="dim"))
    parts.append(_table(query, window))
    for finding in query.findings:
        mark = "[yellow]▲[/]" if finding.severity is Severity.WARNING else "[cyan]•[/]"
        parts.append(Text.from_markup(f"{mark} {escape(finding.title)}  [dim]{finding.code}[/]"))
        parts.append(Text(f"  {finding.detail}", style="dim"))
        parts.append(Text(f"  → {finding.fix}"))
    if query.error:
        parts.append(Text(query.error.splitlines()[0], style="red"))
    return parts


def _table(query: QueryFigures, window: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(f"ms, {window}", style="dim")
    table.add_column("rows/s", justify="right")
    for label in COLUMNS.values():
        table.add_column(label, justify="right")
    for name, label in LABELS.items():
        if found := query.windows[window].figure(name):
            bold = "bold" if name == "end_to_end" else ""
            table.add_row(label, "", *_percentiles(found), style=bold)
    for stage in query.stages if len(query.stages) > 1 else []:
        if found := stage.windows[window].time:
            table.add_row(f"stage {stage.stage}", _rate(stage.windows[window].rows_per_s), *_percentiles(found))
    worst = sorted(query.partitions, key=lambda part: -_p99(part, window))
    for part in worst[:WORST_PARTITIONS]:
        if found := part.windows[window].end_to_end:
            table.add_row(Text(part.name), _rate(part.windows[window].rows_in_per_s), *_percentiles(found))
    if len(worst) > WORST_PARTITIONS:
        table.add_row(f"and {len(worst) - WORST_PARTITIONS} more partitions")
    return table


def _percentiles(found: Distribution) -> list[str]:
    return [f"{getattr(found, key):,.1f}" for key in COLUMNS]


def _rate(rows_per_s: float) -> str:
    return f"{rows_per_s:,.1f}"


def _p99(part: PartitionFigures, window: str) -> float:
    return found.p99_ms if (found := part.windows[window].end_to_end) else 0.0
