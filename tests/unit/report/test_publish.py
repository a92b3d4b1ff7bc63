"""Publishing: all or nothing, nothing overwritten, nothing lost that was paid for, nothing of a row anywhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.errors import BudgetExceeded, JobError
from tacit.jobs.job_file import Job, read_job
from tacit.ledger.ledger import Run
from tacit.report import draft_folder
from tacit.report import job_folder as publish_module
from tacit.report.draft_folder import begin_draft, is_complete
from tacit.report.job_folder import PublishError, publish
from tacit.rows.guard import charges

JOB = """\
name: clinic
policy:
  domain:
    age: {integers: [0, 99], otherwise: clip}
    disease: {categories: [flu, hiv, other], otherwise: other}
  secrets: everything
  presence: secret
rows: people.csv
person: id
dataset: clinic
budget: 1
ledger: ledger.db
out: results
releases:
  - {name: ages, query: {histogram: [age]}, epsilon: 0.2}
  - {name: both of them, query: {histogram: [disease, age]}, epsilon: 0.2}
  - {name: young, query: {count: "age < 30"}, epsilon: 0.1}
"""
# how a run ends is the same for one release as for three, and each is drawn twice
SHORT_JOB = "\n".join(line for line in JOB.splitlines() if "name: ages" not in line and "name: both" not in line) + "\n"
CANARY = "CANARY7f3a"
NUMBER = 918273645


def people(folder: Path, *, ages: list[int], diseases: list[str]) -> None:
    ids = [f"{CANARY}-{number}" for number in range(len(ages))]
    pd.DataFrame({"id": ids, "age": ages, "disease": diseases}).to_csv(folder / "people.csv", index=False)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    people(tmp_path, ages=[3, 31, NUMBER], diseases=["flu", CANARY, "hiv"])
    (tmp_path / "job.yaml").write_text(JOB)
    return read_job(tmp_path / "job.yaml")


@pytest.fixture
def short_job(job: Job, tmp_path: Path) -> Job:
    (tmp_path / "job.yaml").write_text(SHORT_JOB)
    return read_job(tmp_path / "job.yaml")


def spent(job: Job) -> Fraction:
    assert job.ledger is not None
    if not Path(job.ledger).exists():
        return Fraction(0)
    with tc.Ledger(job.ledger, create=False) as ledger:
        return sum((account.spent for account in ledger.accounts()), Fraction(0))


FILES = sorted(
    [f"{name}.{kind}" for name in ("ages", "both of them", "young") for kind in ("csv", "svg", "certificate.json")]
    + ["both of them.cross.csv", "policy.yaml", "report.html", "finished.json"]
)
SHORT_FILES = [name for name in FILES if not name.startswith(("ages", "both"))]


def test_the_folder_is_complete_and_says_so(job: Job) -> None:
    told: list[tuple[str, int, int]] = []
    folder = publish(job, on_progress=lambda *step: told.append(step))
    assert folder == job.out
    assert sorted(file.name for file in folder.iterdir()) == FILES
    finished = json.loads((folder / "finished.json").read_text())
    assert finished["job"] == "clinic"
    assert sorted([*finished["sha256"], "finished.json"]) == FILES
    for name, digest in finished["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert told == [("ages", 0, 4), ("both of them", 1, 4), ("young", 2, 4), ("report", 3, 4), ("done", 4, 4)]
    assert [file.name for file in folder.parent.iterdir() if file.name.endswith(".part")] == []
    assert spent(job) == job.cost


def test_what_is_in_the_folder_can_be_read_back(job: Job) -> None:
    folder = publish(job)
    # with the people whom the job names, as in the certificates
    assert tc.Policy.load(folder / "policy.yaml") == job.about() != job.policy
    table = pd.read_csv(folder / "both of them.csv")
    assert set(table) == {"age", "disease", "value", "lower", "upper", "share"}
    assert len(table) == 300
    certificate = json.loads((folder / "young.certificate.json").read_text())
    assert certificate["epsilon"] == "1/10"
    assert certificate["ledger"]["entry"] == 4
    for file in ("both%20of%20them.csv", "both%20of%20them.cross.csv"):
        assert f'href="{file}"' in (folder / "report.html").read_text()


def test_nothing_of_a_row_is_in_any_file(job: Job) -> None:
    folder = publish(job)
    for file in folder.iterdir():
        content = file.read_bytes()
        assert CANARY.encode() not in content, file.name
        assert str(NUMBER).encode() not in content, file.name
        assert str(folder.parent).encode() not in content, file.name
    assert CANARY.encode() not in (folder.parent / "ledger.db").read_bytes()


def test_files_depend_on_rows_only_through_released_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the same released values from very different people: then every file must be the same, to the last byte
    monkeypatch.setattr(
        "tacit.release.estimate.measure.blur", lambda truth, plan: np.arange(len(truth), dtype=np.int64) % 7
    )
    seen = []
    for number, (ages, diseases) in enumerate([([1, 2], ["flu", "hiv"]), ([99] * 500, [CANARY] * 500), ([], [])]):
        folder = tmp_path / str(number)
        folder.mkdir()
        people(folder, ages=ages, diseases=diseases)
        (folder / "job.yaml").write_text(JOB)
        out = publish(read_job(folder / "job.yaml"))
        seen.append({file.name: _timeless(file.read_text()) for file in out.iterdir() if file.name != "finished.json"})
    assert seen[0] == seen[1] == seen[2]


def _timeless(text: str) -> str:
    """Take out when it was made, and the hash of the ledger entry, which holds the time too."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\+00:00)?", "TIME", text)
    return re.sub(r"[0-9a-f]{64}", "HASH", text)


def test_a_finished_folder_is_never_overwritten(short_job: Job) -> None:
    folder = publish(short_job)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(JobError, match=r"out must be a new or empty folder; this one has .* done already; got"):
        publish(short_job)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert spent(short_job) == short_job.cost


def test_an_empty_folder_may_be_used(short_job: Job) -> None:
    short_job.out.mkdir()
    assert sorted(file.name for file in publish(short_job).iterdir()) == SHORT_FILES


def test_a_half_written_folder_is_recognised_and_refused(job: Job) -> None:
    job.out.mkdir()
    (job.out / "ages.csv").write_text("old")
    with pytest.raises(JobError, match=r"no finished.json, so it is half written .* Remove it after a look"):
        publish(job)
    assert (job.out / "ages.csv").read_text() == "old"
    assert spent(job) == 0


def test_a_draft_of_an_earlier_run_is_recognised_and_refused(job: Job) -> None:
    draft = job.out.with_name("results.part")
    draft.mkdir()
    (draft / "ages.csv").write_text("paid for")
    with pytest.raises(JobError) as caught:
        publish(job)
    for said in ("out has results.part beside it", "broke off", "may have been paid for", "remove it"):
        assert said in str(caught.value)
    assert caught.value.line == JOB.splitlines().index("out: results") + 1
    assert (draft / "ages.csv").read_text() == "paid for"
    assert spent(job) == 0


def test_a_job_that_is_refused_leaves_no_trace(job: Job, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB.replace("budget: 1", "budget: 0.3"))
    with pytest.raises(BudgetExceeded):
        publish(read_job(tmp_path / "job.yaml"))
    (tmp_path / "people.csv").unlink()
    with pytest.raises(JobError, match=r"job.yaml:8: rows must be a file that exists"):
        publish(job)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["job.yaml"]


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_charged(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "job.yaml").write_text(JOB.replace("out: results", "out: file/results"))
    with pytest.raises(JobError, match=r"must be a folder that can be made"):
        publish(read_job(tmp_path / "job.yaml"))
    assert spent(job) == 0


def failing(when: str) -> Any:
    write = publish_module.write_text

    def fail(path: Path, text: str) -> None:
        if path.name == when:
            raise OSError(28, "No space left on device")
        write(path, text)

    return fail


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("when", "kept"),
    [
        ("ages.certificate.json", ["ages.csv"]),
        ("both of them.svg", ["ages.certificate.json", "ages.csv", "ages.svg", "both of them.certificate.json"]),
        ("report.html", [name for name in FILES if name not in ("report.html", "finished.json")]),
        ("finished.json", [name for name in FILES if name != "finished.json"]),
    ],
)
def test_what_was_paid_for_is_kept_when_writing_fails(
    job: Job, monkeypatch: pytest.MonkeyPatch, when: str, kept: list[str]
) -> None:
    monkeypatch.setattr(publish_module, "write_text", failing(when))
    with pytest.raises(PublishError, match="no space left on device") as caught:
        publish(job)
    draft = job.out.with_name("results.part")
    assert str(draft) in str(caught.value)
    assert caught.value.draft == draft
    assert {file.name for file in draft.iterdir()} >= set(kept)
    assert not (draft / "finished.json").exists()
    assert not job.out.exists()
    assert spent(job) == job.cost  # paid as a whole
    assert "Budget was spent for the whole job (0.5 in all)" in str(caught.value)
    assert [run.state for run in runs(job)] == ["lost"]


def runs(job: Job) -> list[Run]:
    assert job.ledger is not None
    with tc.Ledger(job.ledger, create=False) as ledger:
        return ledger.runs()


def test_a_job_is_paid_before_its_first_release_and_as_a_whole(job: Job) -> None:
    seen = []
    publish(job, on_release=lambda name, _: seen.append((spent(job), [run.state for run in runs(job)])))
    assert seen == [(job.cost, ["reserved"])] * 3
    assert [(run.job, run.first, run.last, run.state) for run in runs(job)] == [("job.yaml", 2, 4, "finished")]


def test_a_budget_that_others_take_before_the_charge_is_a_refusal_that_leaves_nothing(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = tc.Session._reserve

    def others_are_faster(session: tc.Session, *args: Any, **options: Any) -> Any:
        if spent(job) == 0:
            with tc.Ledger(str(job.ledger)) as ledger:
                ledger.charge(dataset="clinic", epsilon="0.7", policy=job.about())
        return reserve(session, *args, **options)

    monkeypatch.setattr(tc.Session, "_reserve", others_are_faster)
    with pytest.raises(BudgetExceeded) as caught:
        publish(job)
    assert "must fit in what remains of the total of dataset 'clinic': 0.3 of 1; got 0.5" in str(caught.value)
    assert "Nothing was charged" in str(caught.value)
    assert "Budget was spent" not in str(caught.value)
    assert spent(job) == Fraction(7, 10)
    assert not job.out.exists()
    assert not job.out.with_name("results.part").exists()
    assert runs(job) == []


def test_what_was_paid_for_and_never_made_is_said_to_be_lost(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.release.estimate.measure.blur", lambda truth, plan: 1 / 0)
    with pytest.raises(PublishError, match=r"Budget was spent for the whole job \(0.5 in all\) and is lost"):
        publish(job)
    assert not job.out.with_name("results.part").exists()
    assert [run.state for run in runs(job)] == ["lost"]


def test_a_draft_of_a_run_that_was_never_paid_for_is_no_hindrance(job: Job) -> None:
    draft = job.out.with_name("results.part")
    for left in (None, "", '{"run": "0123"}', "[]"):
        draft.mkdir()
        if left is not None:
            (draft / ".run").write_text(left)
        begin_draft(job).give_up(keep=False)
        assert not draft.exists()
    assert spent(job) == 0


def test_a_run_that_is_at_work_is_told_from_one_that_died(short_job: Job) -> None:
    at_work = begin_draft(short_job)
    with pytest.raises(JobError, match=r"another run of this job is at work; .* Nothing was charged") as caught:
        publish(short_job)
    assert "Budget was spent" not in str(caught.value)
    at_work.give_up(keep=False)
    publish(short_job)


def test_everything_is_on_disk_before_the_folder_has_its_name(short_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[tuple[str, Path]] = []
    fsync, rename = os.fsync, os.rename
    names = {}

    def synced(handle: int) -> None:
        fsync(handle)
        order.append(("sync", Path(os.readlink(f"/proc/self/fd/{handle}"))))

    def renamed(source: Path, target: Path) -> None:
        names.update({file.name: file.stat().st_size for file in Path(source).iterdir()})
        rename(source, target)
        order.append(("rename", Path(target)))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    out = publish(short_job)
    done = order.index(("rename", out))
    draft = out.with_name("results.part")
    before = {path for what, path in order[:done] if what == "sync"}
    assert before >= {draft / name for name in SHORT_FILES} | {draft}
    assert order[done - 1] == ("sync", draft)
    assert ("sync", out.parent) in order[done:]
    assert sorted(names) == SHORT_FILES  # and no mark


def test_a_target_that_appears_in_the_meantime_is_not_replaced(short_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    write = publish_module.write_text

    def slow(path: Path, text: str) -> None:
        write(path, text)
        if path.name == "finished.json":
            short_job.out.mkdir()
            (short_job.out / "precious").write_text("1")

    monkeypatch.setattr(publish_module, "write_text", slow)
    with pytest.raises(PublishError) as caught:
        publish(short_job)
    assert os.listdir(short_job.out) == ["precious"]
    draft = short_job.out.with_name("results.part")
    assert is_complete(draft)
    assert f"All of it was released and is complete in {str(draft)!r}" in str(caught.value)
    assert [run.state for run in runs(short_job)] == ["finished"]


# ---- what is complete is never called lost --------------------------------------------------------------------------


def interrupt_at(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Press Ctrl-C right before or after one of the last steps."""
    owner, name = {
        "before the last file": (publish_module, "_write_finished"),
        "after the last file": (publish_module, "_write_finished"),
        "after the mark goes": (draft_folder.UnfinishedFolder, "unmark"),
        "after the rename": (os, "rename"),
    }[when]
    step = getattr(owner, name)

    def interrupted(*args: Any) -> None:
        if when.startswith("after"):
            step(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("when", "state"),
    [
        ("before the last file", "lost"),
        ("after the last file", "finished"),
        ("after the mark goes", "finished"),
        ("after the rename", "finished"),
    ],
)
def test_an_interrupt_near_the_end_says_what_there_is(
    short_job: Job, monkeypatch: pytest.MonkeyPatch, when: str, state: str
) -> None:
    monkeypatch.setattr(charges, "kept", "")
    with monkeypatch.context() as patched:
        interrupt_at(patched, when)
        with pytest.raises(KeyboardInterrupt):
            publish(short_job)
    assert [run.state for run in runs(short_job)] == [state]
    draft = short_job.out.with_name("results.part")
    kept = short_job.out if when == "after the rename" else draft
    assert repr(str(kept)) in charges.kept
    assert charges.kept in charges.in_words()
    assert ("complete" in charges.kept) == is_complete(kept) == (state == "finished")
    assert short_job.out.exists() == (when == "after the rename")
    if kept == draft:
        with pytest.raises(JobError) as caught:
            publish(short_job)
        said = str(caught.value)
        assert "Nothing was charged now" in said
        assert ("it is complete" in said) == ("lost" not in said) == (state == "finished")
        if state == "finished":
            assert f"Rename {str(draft)!r} to 'results'" in said
            assert sorted(file.name for file in draft.iterdir()) == SHORT_FILES  # no mark is left in it
            draft.rename(short_job.out)
            assert is_complete(short_job.out)
    assert [run.state for run in runs(short_job)] == [state]
    assert spent(short_job) == short_job.cost


@pytest.mark.parametrize("harm", ["changed", "missing", "added", "list", "number", "no json", "folder"])
def test_a_draft_that_is_not_what_its_last_file_says_is_not_complete(short_job: Job, tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "results.part"
    folder.mkdir()
    for name in ("ages.csv", "report.html"):
        (folder / name).write_text(name)
    publish_module._write_finished(folder, short_job)
    assert is_complete(folder)
    last = folder / "finished.json"
    match harm:
        case "changed":
            (folder / "ages.csv").write_text("age,value\n")
        case "missing":
            (folder / "ages.csv").unlink()
        case "added":
            (folder / "more.csv").write_text("")
        case "folder":
            (folder / "more").mkdir()
        case _:
            last.write_text({"list": "[]", "number": '{"sha256": 7}', "no json": "{"}[harm])
    assert not is_complete(folder)


def test_a_disk_that_does_not_confirm_the_name_is_no_loss(short_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = publish_module.synced

    def refused(path: Path) -> None:
        if path == short_job.out.parent:
            raise OSError(5, "Input/output error")
        sync(path)

    monkeypatch.setattr(publish_module, "synced", refused)
    assert is_complete(publish(short_job))
    assert [run.state for run in runs(short_job)] == ["finished"]


def test_releases_are_handed_over_once_they_are_written(job: Job) -> None:
    made: dict[str, tc.ReleaseRecord] = {}

    def look(name: str, record: tc.ReleaseRecord) -> None:
        assert (job.out.with_name("results.part") / f"{name}.certificate.json").exists()
        made[name] = record

    publish(job, on_release=look)
    assert list(made) == ["ages", "both of them", "young"]


def test_a_link_in_place_of_the_draft_is_refused(job: Job, tmp_path: Path) -> None:
    job.out.with_name("results.part").symlink_to(tmp_path / "nowhere")
    with pytest.raises(JobError, match=r"results.part beside it"):
        publish(job)
    assert spent(job) == 0


def test_an_interrupt_stays_an_interrupt(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publish_module, "write_text", interrupt)
    with pytest.raises(KeyboardInterrupt):
        publish(job)
    assert (job.out.with_name("results.part") / "ages.csv").exists()


def test_large_tables_are_parquet_and_the_report_links_them(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tacit.release.results.value_files", "tacit.report.csv_tables"):
        monkeypatch.setattr(f"{module}.LARGEST_CSV", 100)
    out = publish(job)
    tables = {"ages.csv", "both of them.parquet", "young.csv"}
    wanted = (set(FILES) - {"both of them.csv", "both of them.cross.csv"}) | tables
    assert {file.name for file in out.iterdir()} == wanted
    assert set(json.loads((out / "finished.json").read_text())["sha256"]) == wanted - {"finished.json"}
    report = (out / "report.html").read_text()
    assert all(f'href="{quote(name)}"' in report for name in tables)
    assert "both%20of%20them.csv" not in report
    assert pd.read_parquet(out / "both of them.parquet").columns.tolist()[:3] == ["disease", "age", "value"]
