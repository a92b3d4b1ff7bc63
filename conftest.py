"""What all tests share: fixed examples for Hypothesis, one PostgreSQL and one Spark."""

import gc
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from parameters import mark_all_but_one_in_so_many_as_slow

# The same examples in every run, so that a change is judged by itself; `make audit` draws fresh ones.
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("fresh", deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
settings.load_profile(os.environ.get("TACIT_EXAMPLES", "fixed"))


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that need Spark or PostgreSQL first: workers begin at different places, so one of them starts both.

    Pages of the documentation come next: each is one long test, and none of them should be the last to end.
    """
    mark_all_but_one_in_so_many_as_slow(items)

    def needs_no_server(item: pytest.Item) -> bool:
        asked = {*getattr(item, "fixturenames", ()), *(mark.name for mark in item.iter_markers())}
        return asked.isdisjoint(("spark", "postgres"))

    items.sort(key=lambda item: (needs_no_server(item), item.path.suffix == ".py"))


def pytest_collection_finish() -> None:
    """Take thousands of collected tests out of every later search for garbage."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let garbage be found at the end: some libraries complain about what is left."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a real PostgreSQL and return its address."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pgserver has opinions on where the run-time folder should be
        pgserver = pytest.importorskip("pgserver", reason="needs the package pgserver: pip install 'tacit[dev]'")
        try:
            # Not in tmp_path: run by root, pgserver opens all folders above its own to everybody.
            server = pgserver.get_server(tempfile.mkdtemp(prefix="tacit-pg-"), cleanup_mode="delete")
        except Exception as error:
            pytest.skip(f"pgserver cannot start a PostgreSQL here: {type(error).__name__}: {error}")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(scope="session")
def spark() -> Any:
    """Start Spark on this machine's loopback and return its session."""
    pyspark = pytest.importorskip("pyspark", reason="the spark extra is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, and no java is on the PATH")
    builder = pyspark.sql.SparkSession.builder.master("local[2]").appName("tacit-tests")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",  # compiling costs more than these few rows
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        # a Java that optimises what it runs takes twice as long: these tests end before that pays
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
