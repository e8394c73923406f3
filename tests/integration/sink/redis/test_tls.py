"""`tailrace-redis` over TLS: the certificate is checked."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tailrace import EmbeddedRedis
from tailrace._process.ports import free_port
from tailrace.contract.findings import Severity
from tests.helpers.pipeline import Pipeline
from tests.helpers.redis import EPOCH, SOON_S, Keys
from tests.helpers.waiting import until

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def certificate(folder: Path, name: str, alternative: str) -> tuple[Path, Path]:
    """Signed by itself; the file with the certificate, and that with its key."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName={alternative}", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedRedis, Path, int]]:
    file, key = certificate(tmp_path_factory.mktemp("tls"), "server", "IP:127.0.0.1")
    port = free_port()
    settings = {"tls-port": str(port), "tls-cert-file": str(file), "tls-key-file": str(key), "tls-auth-clients": "no"}
    with EmbeddedRedis(settings=settings) as server:
        yield server, file, port


def test_rows_are_written_to_a_server_that_is_trusted(
    pipeline: Pipeline, encrypted: tuple[EmbeddedRedis, Path, int]
) -> None:
    server, trusted, port = encrypted
    keys = Keys(server, "hash")
    options = {"url": f"rediss://{server.user}@127.0.0.1:{port}/0", "caFile": str(trusted)}
    with keys.running(pipeline, pipeline.rows().select("id", "key"), **options):
        pipeline.send(range(3))
        until(lambda: len(keys.names()) == 3, "the rows", within_s=SOON_S)


def test_others_are_refused(pipeline: Pipeline, encrypted: tuple[EmbeddedRedis, Path, int], tmp_path: Path) -> None:
    server, trusted, port = encrypted
    stranger, _ = certificate(tmp_path, "stranger", "DNS:localhost")
    keys = Keys(server, "hash")
    cases = (
        # Signed by nobody that Java trusts; by somebody else; for another host.
        {"url": f"rediss://{server.user}@127.0.0.1:{port}"},
        {"url": f"rediss://{server.user}@127.0.0.1:{port}", "caFile": str(stranger)},
        {"url": f"rediss://{server.user}@localhost:{port}", "caFile": str(trusted)},
    )
    for options in cases:
        writer = keys.writer(pipeline, pipeline.rows().select("id", "key"), **options)
        verdict = tailrace.check(writer.trigger(realTime=EPOCH))  # type: ignore[call-overload]
        assert [one.code for one in verdict.of(Severity.BLOCKING)] == ["TAILRACE_REDIS_UNREACHABLE"]
