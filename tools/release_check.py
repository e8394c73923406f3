"""Check that this tree can be released: `make release-check`.

Builds the source distribution and the wheel, installs the wheel into an empty environment, and runs a real-time
query there. Prints one line for each check. If all pass, the two files are in dist/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = ROOT / "src" / "tailrace" / "_version.py"
CHANGELOG = ROOT / "CHANGELOG.md"
DIST = ROOT / "dist"
STEP_TIMEOUT_S = 900

# What a user needs from the package: the plugin, a Python worker, state, and the dashboard of the extra `web`.
QUERY = """
import sys, urllib.request
from pyspark.sql import functions as F
import tailrace
from tailrace.testing import StreamTest, session

assert tailrace.__file__.startswith(sys.prefix), tailrace.__file__
spark = session()
with StreamTest(spark) as test:
    numbers = test.source("n long")
    doubled = numbers.rows.select(F.udf(lambda n: 2 * n, "long")("n").alias("n"))
    counts = test.start(doubled.groupBy("n").count())
    numbers.add((1,), (1,), (2,))
    test.process()
    assert counts.latest("n") == {2: 2, 4: 1}, counts.rows()
    with urllib.request.urlopen(tailrace.dashboard(spark).url, timeout=30) as page:
        assert page.status == 200
spark.stop()
"""


class CheckError(Exception):
    """A check did not pass; the message says why."""


def run(command: list[str], *, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    try:
        answer = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=STEP_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise CheckError(f"`{' '.join(command[:4])} …` took longer than {STEP_TIMEOUT_S} s") from None
    if answer.returncode != 0:
        end = "\n".join(answer.stdout.splitlines()[-30:])
        raise CheckError(f"`{' '.join(command[:4])} …` exited with {answer.returncode}:\n{end}")
    return answer.stdout


class ReleaseCheck:
    """The checks in order. Those that build on a failed one are skipped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dist = folder / "dist"
        match = re.search(r'__version__ = "([^"]+)"', VERSION.read_text(encoding="utf-8"))
        if match is None:
            raise SystemExit(f"no __version__ in {VERSION}")
        self.version = match[1]
        self.failed: list[str] = []

    def check(self, name: str, body: Callable[[], str], *, after: tuple[str, ...] = ()) -> None:
        missing = [earlier for earlier in after if earlier in self.failed]
        if missing:
            self.failed.append(name)
            print(f"–  {name}: skipped, because it needs: {', '.join(missing)}", flush=True)
            return
        begun = time.monotonic()
        if sys.stdout.isatty():
            print(f"…  {name}", end="", flush=True)
        try:
            mark, detail = "✓", body()
        except CheckError as failure:
            self.failed.append(name)
            mark, detail = "✗", str(failure)
        if sys.stdout.isatty():
            print("\r\033[K", end="")
        print(f"{mark}  {name}: {detail} ({time.monotonic() - begun:.0f} s)", flush=True)

    def all(self) -> None:
        self.check("clean tree", self.clean_tree)
        self.check("changelog", self.changelog)
        self.check("tag", self.tag)
        self.check("sdist and wheel", self.build)
        self.check("content", self.content, after=("sdist and wheel",))
        self.check("install", self.install, after=("sdist and wheel",))
        self.check("doctor", self.doctor, after=("install",))
        self.check("query", self.query, after=("install",))

    def clean_tree(self) -> str:
        changed = run(["git", "status", "--porcelain"]).splitlines()
        if changed:
            raise CheckError("commit or remove these first:\n" + "\n".join(changed[:20]))
        return run(["git", "log", "-1", "--format=%h %s"]).strip()

    def changelog(self) -> str:
        sections = re.split(r"^## ", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        titles = {section.splitlines()[0].strip("[] ").split("]")[0].split(" ")[0]: section for section in sections}
        if self.version not in titles:
            raise CheckError(f"{CHANGELOG.name} has no section for {self.version}")
        if "".join(titles.get("Unreleased", "").splitlines()[1:]).strip():
            raise CheckError(f"{CHANGELOG.name} still lists changes under Unreleased: move them to {self.version}")
        return f"has a section for {self.version}"

    def tag(self) -> str:
        if run(["git", "tag", "--list", f"v{self.version}"]).strip():
            raise CheckError(f"v{self.version} exists already: raise the version in {VERSION.relative_to(ROOT)}")
        return f"v{self.version} is free"

    def build(self) -> str:
        # The wheel is built from the sdist, which shows that the sdist is complete.
        run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(self.dist), str(ROOT)])
        files = sorted(self.dist.iterdir())
        expected = {f"tailrace-{self.version}.tar.gz", f"tailrace-{self.version}-py3-none-any.whl"}
        if {file.name for file in files} != expected:
            raise CheckError(f"built {', '.join(file.name for file in files)} instead of {', '.join(sorted(expected))}")
        return ", ".join(f"{file.name} ({file.stat().st_size / 1e6:.1f} MB)" for file in files)

    @property
    def wheel(self) -> Path:
        return self.dist / f"tailrace-{self.version}-py3-none-any.whl"

    def content(self) -> str:
        with zipfile.ZipFile(self.wheel) as archive:
            in_wheel = set(archive.namelist())
        with tarfile.open(self.dist / f"tailrace-{self.version}.tar.gz") as archive:
            in_sdist = {name.partition("/")[2] for name in archive.getnames()}
        wanted = {
            "tailrace/_spark/plugin/tailrace-plugin.jar",
            "tailrace/py.typed",
            "tailrace/new/examples/fraud/app.py",
        }
        if wanted - in_wheel:
            raise CheckError(f"the wheel lacks {', '.join(sorted(wanted - in_wheel))}")
        if strangers := {name.split("/")[0] for name in in_wheel} - {"tailrace", f"tailrace-{self.version}.dist-info"}:
            raise CheckError(f"the wheel has {', '.join(sorted(strangers))} at its top")
        wanted = {"LICENSE", "README.md", "CHANGELOG.md", "jvm/build.py", "pyproject.toml"}
        if wanted - in_sdist:
            raise CheckError(f"the sdist lacks {', '.join(sorted(wanted - in_sdist))}")
        return f"{len(in_wheel)} files in the wheel, {len(in_sdist)} in the sdist"

    def installed(self, program: str, *arguments: str) -> str:
        """Run a program of the empty environment, which must see nothing of this one."""
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "SPARK_CONF_DIR")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        return run([str(self.folder / "venv" / "bin" / program), *arguments], cwd=self.folder, env=environment)

    def install(self) -> str:
        venv.create(self.folder / "venv", with_pip=True)
        self.installed("pip", "install", "--quiet", "--disable-pip-version-check", f"{self.wheel}[web]")
        self.installed("pip", "check", "--disable-pip-version-check")
        found = self.installed("tailrace", "--version").strip()
        if found != f"tailrace {self.version}":
            raise CheckError(f"the installed command says '{found}'")
        self.installed("tailrace", "new", "mine", "--from", "fraud")
        return found

    def doctor(self) -> str:
        self.installed("tailrace", "doctor")
        return "the empty environment is ready for a real-time query"

    def query(self) -> str:
        self.installed("python", "-c", QUERY)
        return "a real-time query with a UDF and state gave the right result; the dashboard answered"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="tailrace-release-") as folder:
        release = ReleaseCheck(Path(folder))
        print(f"Tailrace {release.version}: this takes a few minutes.", flush=True)
        try:
            release.all()
        except KeyboardInterrupt:
            print("\ninterrupted; nothing is left behind", file=sys.stderr)
            return 130
        if release.failed:
            print(f"Not ready: {', '.join(release.failed)}.")
            return 1
        DIST.mkdir(exist_ok=True)
        for file in release.dist.iterdir():
            shutil.copy(file, DIST)
        print(f"Ready. Tag this commit v{release.version} and publish the two files in {DIST.relative_to(ROOT)}/.")
        return 0


if __name__ == "__main__":
    sys.exit(main())
