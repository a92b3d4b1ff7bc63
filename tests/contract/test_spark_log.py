"""No cell reaches the log of Spark's driver, also not from tasks that fail after the first one has."""

import time
from pathlib import Path
from typing import Any

import pytest

import tacit as tc
from tacit.errors import TacitError

CANARY = "CANARY-7f3a"
POLICY = tc.Policy(tc.Domain({"age": tc.Integers(0, 9)}), tc.secrets.everything())


class Captured:
    """A file that Spark logs to, beside wherever else it does."""

    def __init__(self, spark: Any, file: Path) -> None:
        self._file = file
        jvm = spark.sparkContext._jvm
        log4j = jvm.org.apache.logging.log4j
        self._context = log4j.LogManager.getContext(False)
        layout = log4j.core.layout.PatternLayout.newBuilder().withPattern("%p %c %m %throwable%n").build()
        builder = log4j.core.appender.FileAppender.newBuilder()
        builder = builder.withFileName(str(file)).setName(file.name).setLayout(layout)
        self._appender = builder.build()
        self._appender.start()
        self._root = self._context.getRootLogger()
        self._root.addAppender(self._appender)

    def stop(self) -> str:
        """Return what was logged."""
        self._root.removeAppender(self._appender)
        self._appender.stop()
        return self._file.read_text()


def level(spark: Any) -> str:
    return str(spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())


def failing(spark: Any) -> Any:
    """Return a frame of eight partitions, each of which fails later than the one before."""
    # java's sleep returns nothing, so that the cell is what remains
    cell = f"coalesce(reflect('java.lang.Thread', 'sleep', id * 50L), concat('{CANARY}-', id))"
    return spark.range(0, 8, 1, 8).selectExpr(f"cast({cell} as int) as age")


@pytest.mark.spark
def test_tasks_that_fail_late_are_not_in_the_log(spark: Any, tmp_path: Path) -> None:
    before = level(spark)
    session = tc.Session(POLICY, failing(spark), 10)
    ours = Captured(spark, tmp_path / "ours.log")
    for _ in range(2):
        with pytest.raises(TacitError) as caught:
            session.release(tc.histogram("age"), 0.1)
        assert CANARY not in str(caught.value)
    time.sleep(1)
    assert CANARY not in ours.stop()
    assert level(spark) == before
    # that a failure is logged at all, and captured
    theirs = Captured(spark, tmp_path / "theirs.log")
    with pytest.raises(Exception):  # noqa: B017, PT011 - Spark's own, of many kinds
        failing(spark).collect()
    time.sleep(1)
    assert CANARY in theirs.stop()


@pytest.mark.spark
def test_a_reader_that_succeeds_gets_the_level_back(spark: Any) -> None:
    before = level(spark)
    session = tc.Session(POLICY, spark.range(0, 8, 1, 4).withColumnRenamed("id", "age"), 10)
    session.release(tc.histogram("age"), 0.1)
    assert level(spark) == before
