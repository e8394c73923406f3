"""Checkpoint files on a local disk: complete or absent whenever the machine stops, and the same as Spark's own."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tests.helpers.pipeline import Pipeline
from tests.helpers.scala import compiled_jar
from tests.helpers.waiting import until

MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
SPARKS_OWN = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
NEVER = 10**9
# Longer than the 512 bytes that a checksum stands for, and not a multiple of them.
TEXT = "".join(f"line {number}\n" for number in range(200))
MANAGERS = ("tailrace", "spark")


@pytest.fixture(scope="module")
def spark(new_session: Callable[..., SparkSession]) -> SparkSession:
    return new_session("local[6]", {"spark.jars": str(compiled_jar())})


@pytest.fixture
def one_file(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.tailrace.checkpoint.OneFile


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {entry.name: (stat.S_IMODE(entry.stat().st_mode), entry.read_bytes()) for entry in folder.iterdir()}


def hadoop_path(spark: SparkSession, path: Path) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.hadoop.fs.Path(str(path))


class TestAFile:
    @pytest.mark.parametrize("text", ["", "v1\n{}", "x" * 512, TEXT, TEXT * 100])
    def test_is_the_same_as_spark_s_own(self, one_file: Any, tmp_path: Path, text: str) -> None:
        for manager in MANAGERS:
            (tmp_path / manager).mkdir()
            one_file.write(str(tmp_path / manager / "7"), text, False, manager)
        assert tree(tmp_path / "tailrace") == tree(tmp_path / "spark")
        assert set(tree(tmp_path / "tailrace")) == {"7", ".7.crc"}

    @pytest.mark.parametrize("writer", MANAGERS)
    @pytest.mark.parametrize("reader", MANAGERS)
    def test_is_read_by_either(self, one_file: Any, tmp_path: Path, writer: str, reader: str) -> None:
        path = str(tmp_path / "7")
        one_file.write(path, "before", True, reader)
        one_file.write(path, TEXT, True, writer)
        assert one_file.read(path, reader) == TEXT

    @pytest.mark.parametrize("name", ["with space", "50%25 off", "ünïcode"])
    def test_with_a_strange_name(self, one_file: Any, tmp_path: Path, name: str) -> None:
        path = tmp_path / name / "7"
        path.parent.mkdir()
        one_file.write(str(path), TEXT, False, "tailrace")
        assert path.read_text() == TEXT == one_file.read(str(path), "spark")

    def test_has_hadoop_s_permissions_whatever_the_process_s_mask(self, one_file: Any, tmp_path: Path) -> None:
        one_file.write(str(tmp_path / "7"), TEXT, False, "tailrace")
        assert {mode for mode, _ in tree(tmp_path).values()} == {0o644}

    def test_is_never_replaced_unless_asked(self, one_file: Any, tmp_path: Path) -> None:
        path = str(tmp_path / "7")
        one_file.write(path, "first", False, "tailrace")
        with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
            one_file.write(path, "second", False, "tailrace")
        assert one_file.read(path, "spark") == "first"
        assert set(tree(tmp_path)) == {"7", ".7.crc"}

    def test_after_somebody_deleted_its_predecessor_by_hand(self, one_file: Any, tmp_path: Path) -> None:
        """The old checksums are not left beside the new file, wherever the machine stops."""
        steps = one_file.write(str(tmp_path / "all"), TEXT, False, NEVER, False)
        without_sums = 0
        for last in range(steps):
            path = tmp_path / f"{last}" / "7"
            path.parent.mkdir()
            one_file.write(str(path), "old", False, "spark")
            path.unlink()
            one_file.write(str(path), TEXT, False, last, False)
            if path.exists():
                sums = path.with_name(".7.crc")
                assert not sums.exists() or len(sums.read_bytes()) > 12, "those of the longer text"
                without_sums += not sums.exists()
        assert without_sums > 0, "the machine never stopped where it matters"

    def test_that_is_canceled_leaves_nothing(self, one_file: Any, tmp_path: Path) -> None:
        one_file.cancel(str(tmp_path / "7"), TEXT)
        assert list(tmp_path.iterdir()) == []

    def test_that_is_interrupted_is_an_interruption(self, one_file: Any, tmp_path: Path) -> None:
        """Spark takes this exception, and few others, for the stop of a query, which is no failure."""
        with pytest.raises(Py4JJavaError, match="ClosedByInterruptException"):
            one_file.interrupt(str(tmp_path / "7"), TEXT)

    def test_in_a_folder_that_is_not_there(self, one_file: Any, tmp_path: Path) -> None:
        with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
            one_file.write(str(tmp_path / "missing" / "7"), TEXT, False, "tailrace")

    def test_a_folder_is_made_with_its_parents(self, one_file: Any, spark: SparkSession, tmp_path: Path) -> None:
        for manager in MANAGERS:
            folder = tmp_path / manager / "in" / "it"
            one_file.managerOf(str(tmp_path / "x"), manager).mkdirs(hadoop_path(spark, folder))
            one_file.managerOf(str(tmp_path / "x"), manager).mkdirs(hadoop_path(spark, folder))
        modes = [stat.S_IMODE((tmp_path / manager / "in" / "it").stat().st_mode) for manager in MANAGERS]
        assert modes[0] == modes[1]

    def test_a_folder_that_is_a_link(self, one_file: Any, spark: SparkSession, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        one_file.managerOf(str(tmp_path / "link" / "7"), "tailrace").createCheckpointDirectory()
        one_file.write(str(tmp_path / "link" / "7"), TEXT, False, "tailrace")
        assert (tmp_path / "real" / "7").read_text() == TEXT


class TestAMachineThatStops:
    @pytest.mark.parametrize("overwrite", [False, True])
    @pytest.mark.parametrize("loses_power", [False, True])
    def test_before_any_step_leaves_the_old_file_or_the_new(
        self, spark: SparkSession, one_file: Any, tmp_path: Path, overwrite: bool, loses_power: bool
    ) -> None:
        seen = set()
        steps = one_file.write(str(tmp_path / "all"), TEXT, overwrite, NEVER, loses_power)
        assert steps >= 10
        for last in range(steps):
            folder = tmp_path / f"stopped-at-{last}"
            folder.mkdir()
            path = str(folder / "7")
            if overwrite:
                one_file.write(path, "old", True, "spark")
            one_file.write(path, TEXT, overwrite, last, loses_power)
            listed = one_file.managerOf(path, "tailrace").list(hadoop_path(spark, folder))
            assert {status.getPath().getName() for status in listed} <= {"7"}, (
                "what it left behind is nobody's business"
            )
            found = {one_file.read(path, manager) for manager in MANAGERS}
            assert len(found) == 1, f"at step {last} Tailrace and Spark do not read the same"
            seen |= found
            # The query starts again and comes to the same point; either way the file is whole then.
            for manager in MANAGERS:
                one_file.write(path, TEXT, True, manager)
                assert one_file.read(path, "spark") == one_file.read(path, "tailrace") == TEXT
        assert seen == {"old" if overwrite else None, TEXT}

    def test_a_disk_that_is_left_to_the_system(self, spark: SparkSession) -> None:
        """Only by explicit choice."""
        jvm: Any = spark._jvm
        disk = jvm.org.apache.spark.sql.tailrace.checkpoint.Disk
        conf = jvm.org.apache.hadoop.conf.Configuration()
        assert "Durable" in disk.of(conf).getClass().getName()
        conf.set("spark.tailrace.checkpoint.fsync", "false")
        assert "Relaxed" in disk.of(conf).getClass().getName()


class TestACheckpoint:
    def test_goes_on_with_spark_s_manager_and_back(self, spark: SparkSession, pipeline: Pipeline) -> None:
        """Counts go on from what the other left: nothing lost, nothing counted twice."""
        own = spark.conf.get(MANAGER_KEY)
        try:
            for turn, manager in enumerate((own, SPARKS_OWN, own)):
                assert manager is not None
                spark.conf.set(MANAGER_KEY, manager)
                self._count_ten_more(pipeline, turn)
        finally:
            spark.conf.set(MANAGER_KEY, own or "")
        names = {entry.name for entry in (pipeline.checkpoint / "commits").iterdir()}
        assert {f".{name}.crc" for name in names if name.isdigit()} <= names

    def _count_ten_more(self, pipeline: Pipeline, turn: int) -> None:
        with pipeline.collect() as out, pipeline.running(pipeline.counts(), epoch="5 seconds"):
            pipeline.send(range(turn * 10, turn * 10 + 10), keys=1)
            until(lambda: any(row["n"] == turn * 10 + 10 for row in out.rows()), f"{turn * 10 + 10} rows counted")
            committed = len(pipeline.log("commits"))
            until(lambda: len(pipeline.log("commits")) > committed, "the epoch's commit")

    def test_on_another_file_system_is_spark_s_business(self, spark: SparkSession, tmp_path: Path) -> None:
        jvm: Any = spark._jvm
        conf = jvm.org.apache.hadoop.conf.Configuration()
        # Hadoop's local file system without checksums is not the one that we know how to imitate.
        conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
        conf.set("fs.file.impl.disable.cache", "true")
        conf.set(MANAGER_KEY, spark.conf.get(MANAGER_KEY))
        path = jvm.org.apache.hadoop.fs.Path(str(tmp_path))
        checkpointing = jvm.org.apache.spark.sql.execution.streaming.checkpointing
        files = checkpointing.CheckpointFileManager.create(path, conf)
        inner = files.getClass().getDeclaredField("files")
        inner.setAccessible(True)
        assert inner.get(files).getClass().getName() == SPARKS_OWN
