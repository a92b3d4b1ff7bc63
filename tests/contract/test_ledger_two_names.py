"""One ledger file under two names never spends twice; and what a ledger says of disks that are full or read-only."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from tests.older_ledgers import as_older

from tacit.errors import LedgerError
from tacit.ledger.ledger import Ledger

CHARGES = 20

SPENDER = """
import sys
from tacit.errors import TacitError
from tacit.ledger.ledger import Ledger
done = 0
said = ""
try:
    with Ledger(sys.argv[1]) as ledger:
        for _ in range(int(sys.argv[2])):
            ledger.charge(dataset="clinic", epsilon=1)
            done += 1
except TacitError as error:
    said = str(error)
print(done, said)
"""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "one"
    folder.mkdir()
    with Ledger(folder / "ledger.db") as opened:
        opened.grant(dataset="clinic", epsilon=CHARGES)
    return folder / "ledger.db"


def spend(*names: Path | str, command: tuple[str, ...] = ()) -> tuple[int, str]:
    """Charge under all names at once until nothing is left; return how many were acknowledged, and what was refused."""
    started = [
        subprocess.Popen(
            [*command, sys.executable, "-c", SPENDER, str(name), str(CHARGES)], stdout=subprocess.PIPE, text=True
        )
        for name in names
    ]
    said = [process.communicate(timeout=120)[0].strip().partition(" ") for process in started]
    return sum(int(done) for done, _, _ in said), " ".join(sentence for _, _, sentence in said)


def spent(ledger: Path) -> Fraction:
    with Ledger(ledger, create=False) as opened:
        assert opened.verify().ok
        return CHARGES - opened.remaining(dataset="clinic")


def test_two_hard_links_spend_nothing(ledger: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    os.link(ledger, other)
    done, said = spend(ledger, other)
    assert done == 0
    assert said.count("must have one name, and this file has 2 (hard links)") == 2
    assert spent(ledger) == 0
    other.unlink()
    assert spend(ledger)[0] == CHARGES


def test_a_second_name_that_comes_while_a_ledger_is_open_is_noticed(ledger: Path, tmp_path: Path) -> None:
    with Ledger(ledger) as opened:
        opened.charge(dataset="clinic", epsilon=1)
        os.link(ledger, tmp_path / "other.db")
        with pytest.raises(LedgerError, match="must have one name"):
            opened.charge(dataset="clinic", epsilon=1)
        assert opened.remaining(dataset="clinic") == CHARGES - 1


def test_links_to_the_file_and_to_its_folder_are_the_same_ledger(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "file.db").symlink_to(ledger)
    (tmp_path / "folder").symlink_to(ledger.parent)
    done, _ = spend(f"sqlite:///{tmp_path}/file.db", tmp_path / "folder" / "ledger.db")
    assert done == CHARGES
    assert spent(ledger) == CHARGES


def may_mount() -> bool:
    return (
        sys.platform == "linux"
        and shutil.which("unshare") is not None
        and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0
    )


needs_mounts = pytest.mark.skipif(not may_mount(), reason="mounting needs Linux and the right to do so")


@needs_mounts
def test_a_file_that_is_mounted_by_itself_is_refused_and_its_folder_is_not(ledger: Path, tmp_path: Path) -> None:
    (tmp_path / "file of its own.db").touch()
    (tmp_path / "folder").mkdir()
    mounted = (
        f"mount --bind '{ledger}' '{tmp_path}/file of its own.db' && "
        f"mount --bind '{ledger.parent}' '{tmp_path}/folder' && exec \"$0\" \"$@\""
    )
    command = ("unshare", "-m", "sh", "-c", mounted)
    done, said = spend(tmp_path / "file of its own.db", command=command)
    assert done == 0
    assert "is mounted by itself" in said
    assert "Mount the folder" in said
    assert spend(tmp_path / "folder" / "ledger.db", ledger, command=command)[0] == CHARGES
    assert spent(ledger) == CHARGES


def test_locks_belong_to_the_file_and_not_to_its_name(ledger: Path, tmp_path: Path) -> None:
    # what is left if a second name were not noticed: the journal is not beside one of the names while it is written
    os.link(ledger, tmp_path / "other.db")
    with closing(sqlite3.connect(ledger, isolation_level=None)) as one:
        assert one.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        one.execute("BEGIN IMMEDIATE")
        other = sqlite3.connect(tmp_path / "other.db", timeout=0)
        with closing(other), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")


def test_a_ledger_with_a_write_ahead_log_is_brought_over(ledger: Path) -> None:
    as_older(f"sqlite:///{ledger}", version=1)
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("DROP TABLE tacit_runs")
        db.commit()
    with Ledger(ledger) as opened:
        assert opened.runs() == []
        opened.charge(dataset="clinic", epsilon=1)
        assert opened.verify().ok
        assert opened.runs() == []
    with closing(sqlite3.connect(ledger)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert db.execute("SELECT version FROM tacit_head").fetchone() == (3,)
    assert sorted(path.name for path in ledger.parent.iterdir()) == ["ledger.db"]


@pytest.mark.parametrize(
    "setting",
    ["nolock=1", "vfs=unix-none", "vfs=unix-dotfile", "immutable=1", "cache=shared", "psow=0", "modeof=x", "mode=rx"],
)
def test_no_address_switches_locks_off(ledger: Path, setting: str) -> None:
    for address in (f"sqlite:///file:{ledger}?{setting}&uri=true", f"sqlite:///{ledger}?{setting}"):
        with pytest.raises(LedgerError, match=f"must not set {setting.split('=')[0]}.*got '{setting}'"):
            Ledger(address)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may look into, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-shared-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


LOOK = """
import os, sys
from tacit.errors import TacitError
from tacit.ledger.ledger import Ledger
Ledger(sys.argv[2]).close()  # loads everything while the interpreter can still be read
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with Ledger(sys.argv[1], create=False) as ledger:
    print(ledger.verify().ok, ledger.remaining(dataset="clinic"), len(ledger.entries()))
    try:
        ledger.charge(dataset="clinic", epsilon=1)
    except TacitError as error:
        print(error)
"""


@pytest.mark.skipif(os.name == "nt", reason="permissions are another matter there")
def test_who_may_only_read_can_look_and_verify(shared: Path, tmp_path: Path) -> None:
    file = shared / "ledger.db"
    with Ledger(file) as ledger:
        ledger.grant(dataset="clinic", epsilon=2)
        ledger.charge(dataset="clinic", epsilon=1)
    file.chmod(0o444)
    shared.chmod(0o555)
    command = [sys.executable, "-c", LOOK, str(file), str(tmp_path / "other.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    seen, refused = done.stdout.splitlines()
    assert seen == "True 1 2"
    assert refused == f"{file}: may not be written to; nothing was changed. Ask for write permission."


FULL = """
import sys
from tacit.errors import TacitError
from tacit.ledger.ledger import Ledger
done = 0
try:
    with Ledger(sys.argv[1]) as ledger:
        ledger.grant(dataset="clinic", epsilon=10**6)
        if len(sys.argv) > 2:
            import resource
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
        while True:
            ledger.charge(dataset="clinic", epsilon=1, what="x" * 900)
            done += 1
except TacitError as error:
    print(error)
with Ledger(sys.argv[1], create=False) as ledger:
    print(ledger.verify().ok and ledger.remaining(dataset="clinic") == 10**6 - done)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits there")
def test_a_limit_on_file_sizes_is_said_to_be_the_disk(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "ledger.db"), str(100_000)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said, sound = done.stdout.splitlines()
    assert "the disk" in said
    assert "server" not in said
    assert sound == "True", done.stderr


@needs_mounts
def test_a_full_disk_is_said_to_be_full(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=256k none \'{tmp_path}\' && exec "$0" "$@"'
    command = ["unshare", "-m", "sh", "-c", script, sys.executable, "-c", FULL, str(tmp_path / "ledger.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said, sound = done.stdout.splitlines()
    assert said.endswith("cannot be written to: the disk is full; nothing was changed. Make room.")
    assert sound == "True", done.stderr
