"""Requests to a dashboard."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families as parse_text

from tailrace.dashboard import Dashboard


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def ask(dashboard: Dashboard, path: str, method: str = "GET", **headers: str) -> Answer:
    """One request; header names with underscores for their hyphens."""
    connection = http.client.HTTPConnection(dashboard.host, dashboard.port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def samples(dashboard: Dashboard) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = parse_text(ask(dashboard, "/metrics").body.decode())
    found = [(one.name, frozenset(one.labels.items()), one.value) for family in families for one in family.samples]
    series = {(name, labels): value for name, labels, value in found}
    assert len(series) == len(found), "a series appears twice"
    return series


def value(dashboard: Dashboard, name: str, **labels: str) -> float:
    return samples(dashboard)[name, frozenset(labels.items())]
