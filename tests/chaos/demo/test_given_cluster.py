"""The demo on an existing broker."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import urllib.request
from typing import Any

from confluent_kafka.admin import AdminClient

from tailrace import EmbeddedKafka
from tests.helpers.processes import tailrace_command
from tests.helpers.waiting import until


def test_one_mode_on_a_given_cluster_runs_on_if_asked_and_leaves_no_topic(kafka: EmbeddedKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    demo = subprocess.Popen(
        tailrace_command(
            *("demo", "--mode", "real-time", "--seconds", "10", "--rate", "50", "--keep"),
            *("--bootstrap-servers", kafka.bootstrap_servers),
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert demo.stderr is not None
    printed = ""
    for line in demo.stderr:
        printed += line
        if "runs on" in line:
            break
    address = re.search(r"Dashboard: (http://127\.0\.0\.1:\d+/)", printed)
    assert address is not None, printed
    health = until(lambda: _health(address[1]), "the query is up")
    assert health["queries"]["ready"] == ["fraud scoring"]
    demo.send_signal(signal.SIGINT)
    output, rest = demo.communicate(timeout=60)
    assert demo.returncode == 0, printed + rest
    assert "real-time" in output
    assert "Traceback" not in printed + rest
    assert "embedded" not in printed, "it was to use the given broker"
    assert [name for name in admin.list_topics(timeout=60).topics if name.startswith("tailrace-demo")] == []


def _health(url: str) -> dict[str, Any] | None:
    """What the page says of the query, once it reads."""
    with urllib.request.urlopen(f"{url}health", timeout=60) as answer:
        health: dict[str, Any] = json.load(answer)
        return health if health["status"] == "ready" else None
