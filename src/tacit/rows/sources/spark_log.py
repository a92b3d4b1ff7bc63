"""Spark's own log while rows are read: off until the last task of ours has ended.

Guarantee   Nothing that a task of ours fails with reaches the log of the driver: not the task that failed first, nor
            one that was cancelled for it and failed later.
Assumes     The executors' own logs, where executors are other machines, are as secret as the rows.
Why         A failed job is reported while other tasks of it still run; each of them logs its own failure, cell
            included, when it ends. Spark counts a task as ended only after it has logged its failure.
Checked by  tests/contract/test_spark_log.py.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any, Final

_LOGGERS: Final = ("py4j", "pyspark")
_CONTEXT_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")  # quote what failed
_PATIENCE: Final = 2.0  # seconds that a caller waits for tasks to end; after that a thread of ours does
_LOOK_AGAIN: Final = 0.02


class _Off:
    """How many readers want the log of one Spark to be off, and the level that it had before."""

    def __init__(self) -> None:
        self.readers = 0
        self.level = ""
        self.lock = threading.Lock()


_offs: Final[dict[str, _Off]] = {}  # by application


@contextlib.contextmanager
def log_off(source: Any) -> Iterator[None]:
    """Keep Spark quiet while rows are read, and until the tasks that read them have ended."""
    loggers = _python_loggers()
    before = [logger.disabled for logger in loggers]
    context, tag = None, f"tacit-{uuid.uuid4().hex}"
    with contextlib.suppress(Exception):  # over Spark Connect the log is the server's
        found = source.sparkSession.sparkContext
        _turn_off(found)
        context = found
        context.addJobTag(tag)
    for logger in loggers:
        logger.disabled = True
    failed = True
    try:
        yield
        failed = False
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was
        if context is not None:
            _turn_on_in_the_end(context, tag, failed=failed)


def _python_loggers() -> list[logging.Logger]:
    # a logger does not ask its parent whether it is disabled
    known = [name for name in list(logging.root.manager.loggerDict) if name.split(".")[0] in _LOGGERS]
    loggers = [logging.getLogger(name) for name in {*_LOGGERS, *known}]
    with contextlib.suppress(ImportError):
        from pyspark.logger import PySparkLogger

        # made only when something fails, and of a kind of their own: a plain logger in their place would break Spark
        loggers += [PySparkLogger.getLogger(name) for name in _CONTEXT_LOGGERS]
    return loggers


def _off_of(context: Any) -> _Off:
    return _offs.setdefault(str(context.applicationId), _Off())


def _turn_off(context: Any) -> None:
    off = _off_of(context)
    with off.lock:
        if not off.readers:
            root = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
            off.level = root.getLevel().toString()
            context.setLogLevel("OFF")
        off.readers += 1


def _turn_on(context: Any) -> None:
    off = _off_of(context)
    with off.lock:
        off.readers -= 1
        if not off.readers:
            context.setLogLevel(off.level)


def _turn_on_in_the_end(context: Any, tag: str, *, failed: bool) -> None:
    """Turn the log on again once no task with the tag runs; after some patience, in a thread of its own."""

    def wait(until: float) -> bool:
        while _is_running(context, tag):
            if time.monotonic() > until:
                return False
            time.sleep(_LOOK_AGAIN)
        return True

    def later() -> None:
        with contextlib.suppress(Exception):  # Spark was stopped
            wait(float("inf"))
            _turn_on(context)

    with contextlib.suppress(Exception):
        context.removeJobTag(tag)
        if failed:
            context.cancelJobsWithTag(tag)
            # what has begun is told to the store by way of a queue
            context._jsc.sc().listenerBus().waitUntilEmpty(int(_PATIENCE * 1000))
        if wait(time.monotonic() + _PATIENCE):
            _turn_on(context)
        else:
            threading.Thread(target=later, name="tacit-spark-log", daemon=True).start()


def _is_running(context: Any, tag: str) -> bool:
    """Say whether a task of a job with this tag has not ended, as the store of Spark's web pages has it."""
    tracker = context._jsc.sc().statusTracker()
    for job in tracker.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        if not info.isDefined():
            continue
        for stage in info.get().stageIds():
            about = tracker.getStageInfo(stage)
            if about.isDefined() and about.get().numActiveTasks() > 0:
                return True
    return False
