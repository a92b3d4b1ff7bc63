"""Planning the demo job: how many plans a run makes, and its time beside that of planning each question once."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import tacit
from tacit.jobs.job_file import Job, read_job
from tacit.jobs.job_run import plan_job
from tacit.plan.choose import choose
from tacit.report.job_folder import publish


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(*, quick: bool = False) -> dict[str, float]:
    """Print how many plans `tacit run` makes, and how long planning takes; `quick` times it once."""
    with tempfile.TemporaryDirectory() as folder:
        for file in ("adult.policy.yaml", "adult.job.yaml"):
            shutil.copy(Path(tacit.__file__).parent / "data" / file, folder)
        job: Job = read_job(Path(folder) / "adult.job.yaml")
        with patch("tacit.release.planner.choose", side_effect=choose) as counted:
            publish(plan_job(job))
        repeats = 1 if quick else 5
        planning = min(seconds(lambda: plan_job(job)) for _ in range(repeats))
        baseline = min(
            seconds(lambda: [choose(one.query, job.about(), one.epsilon) for one in job.releases])
            for _ in range(repeats)
        )
    found = {
        "releases": len(job.releases),
        "plans_made_by_a_run": counted.call_count,
        "seconds": planning,
        "over_each_question_once": planning / baseline,
    }
    print(f"{found['plans_made_by_a_run']} plans for {found['releases']} releases", end=", ")
    print(f"{planning:.3f} s, {found['over_each_question_once']:.2f} times planning each question once")
    return found


if __name__ == "__main__":
    main()
