"""The audit of a whole release as a black box: rows in, a record out, on made-up neighbours from the policy.

Guarantee   As in `audit/sampled_audits/sampled_audit.py`: a verdict of LEAK_FOUND at an epsilon that does hold has
            probability at most alpha, which all made-up pairs share. NONE_FOUND proves nothing.
Assumes     Reading the same rows twice gives the same counts. That is tried on the first draws; then counts are
            remembered, since reading takes most of the time. A plan is made before rows are opened, so it is made
            once for all draws.
Why         What is compared is everything that a record publishes: values, order, intervals, frame, texts, certificate
            (but for the time at which it was made) and all that is pickled with it, from which its chart is drawn. So a
            mistake shows wherever it is made: in which rows count, in the noise, in post-processing, in a label. A
            frame and a certificate take as long as all the rest, so they are made of one release in four, by lot.
Checked by  tests/statistical/test_release_audit.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit import noise
from tacit.amounts import LARGEST_EPSILON, as_epsilon
from tacit.audit.sampled_audits.canonical import canonical
from tacit.audit.sampled_audits.draws import FEWEST, Progress
from tacit.audit.sampled_audits.made_up import MadeUp, made_up
from tacit.audit.sampled_audits.sampled_audit import MOST_EVENTS, SampledAudit, Verdict, check_samples, sampled
from tacit.drawing import watched
from tacit.errors import PolicyError, kind_of, sealed
from tacit.plan.choose import choose
from tacit.plan.plans.plan import Plan
from tacit.policy.policy import Policy
from tacit.release.planner import Planner, check_options
from tacit.release.results.record import ReleaseRecord
from tacit.release.session import Session

SAMPLES: Final = 20_000
SECONDS: Final = 30.0  # for one release ..
SECONDS_OF_A_JOB: Final = 60.0  # .. and for all of a job, if the fewest samples take no longer
READ_FIRST: Final = 3  # times that rows are read before counts are remembered
LEVELS: Final = (0.95, 0.5)
FRAMES: Final = 4  # one release in so many has its frame and its certificate looked at


@dataclass(frozen=True)
class WholeRelease:
    """A release under audit: the question, its price and its options, under a policy about people who own rows."""

    policy: Policy
    query: Any
    epsilon: Fraction
    consistent: bool = False
    nonnegative: bool = False
    _sessions: dict[int, Session] = field(default_factory=dict, repr=False, compare=False)
    _remembered: dict[int, Remembered] = field(default_factory=dict, repr=False, compare=False)
    _planned: list[tuple[Planner, Plan]] = field(default_factory=list, repr=False, compare=False)

    def pairs(self) -> list[MadeUp]:
        """Return the made-up neighbours."""
        plan = choose(self.query, self.policy, self.epsilon)
        check_options(plan, consistent=self.consistent)
        return made_up(plan)

    def release(self, rows: pd.DataFrame, size: int) -> list[Any]:
        """Return what so many releases of these rows publish."""
        return [self._published(rows) for _ in range(size)]

    def _published(self, rows: pd.DataFrame) -> Any:
        session = self._sessions.get(id(rows))
        if session is None or session.remaining < self.epsilon or self.query.remembers:
            # answers that are remembered are drawn once in each session, and asking again costs nothing
            session = self._sessions[id(rows)] = self._opened(rows)
        plan = self._planned[0][1]
        asked = [session.release(plan) for _ in range(2 if self.query.remembers else 1)]
        framed = not noise.uniform_below(FRAMES, 1)[0]
        published = [list_published(record, framed=framed, planned=plan) for record in asked]
        return published if self.query.remembers else published[0]

    def _opened(self, rows: pd.DataFrame) -> Session:
        # the budget of a session is bounded, what is known about its rows is not
        session = RememberingSession(self.policy, rows, max(self.epsilon, Fraction(LARGEST_EPSILON)), self._remembered)
        if not self._planned:
            planner = Planner(session.policy)
            options: dict[str, Any] = {"consistent": self.consistent, "nonnegative": self.nonnegative}
            self._planned.append((planner, planner.plan(self.query, self.epsilon, **options)))
        session.adopt(self._planned[0][0])
        return session


class Remembered:
    """Rows whose counts are the same each time, so that they need not be read for each of many releases."""

    def __init__(self, rows: Any) -> None:
        self._rows, self.kind = rows, rows.kind
        self._readings: dict[Any, Readings] = {}

    def check(self, tally: Any) -> None:
        """Refuse what the rows refuse, the first times: what can be counted follows from the names of columns."""
        self._checked("tally", tally).read(lambda: self._rows.check(tally))

    @property
    def frame(self) -> Any:
        """What makes a frame of the rows' own kind."""
        return self._rows.frame

    def check_naming(self, key: Sequence[str]) -> None:
        """Refuse what the rows refuse, the first times as well."""
        self._checked("naming", tuple(key)).read(lambda: self._rows.check_naming(key))

    def _checked(self, *asked: Any) -> Readings:
        return self._readings.setdefault(("check", *asked), Readings(lambda one, other: one is other))

    def records(self, names: Sequence[str], key: Sequence[str], work: Any) -> Any:
        """Yield what work returns for each batch of positions."""
        readings = self._readings.setdefault(("records", *names, "key", *key), Readings())
        batches = readings.read(lambda: list(self._rows.records(names, key, lambda *batch: batch)))
        return (work(*batch) for batch in batches)

    def tally(self, tallies: Sequence[Any]) -> list[Any]:
        """Return what each tally asks for."""
        return [np.copy(self._recall(tally)) for tally in tallies]

    def _recall(self, tally: Any) -> Any:
        readings = self._readings.setdefault(tally, Readings(np.array_equal))
        return readings.read(lambda: self._rows.tally([tally])[0])


class Readings:
    """What was read the first times; it is read each time, unless these were the same."""

    def __init__(self, are_alike: Callable[[Any, Any], bool] | None = None) -> None:
        self._are_alike = are_alike or (lambda one, other: canonical(one) == canonical(other))
        self._first: list[Any] = []
        self._is_steady = True

    def read(self, read: Callable[[], Any]) -> Any:
        """Return what is read, or what was read before."""
        if self._is_steady and len(self._first) == READ_FIRST:
            return self._first[0]
        found = read()
        if self._is_steady:
            self._is_steady = not self._first or self._are_alike(self._first[0], found)
            self._first.append(found)
        return found


class RememberingSession(Session):
    """A session over rows that an audit made up and counts once for many releases."""

    def __init__(self, policy: Policy, rows: pd.DataFrame, budget: Fraction, remembered: dict[int, Remembered]) -> None:
        self._remembered = remembered
        super().__init__(policy, rows, budget)

    def open_rows(self, rows: Any) -> Any:
        """Return rows that remember what was counted."""
        if id(rows) not in self._remembered:
            self._remembered[id(rows)] = Remembered(super().open_rows(rows))
        return self._remembered[id(rows)]


def list_published(record: ReleaseRecord, *, framed: bool = True, planned: Plan | None = None) -> dict[str, Any]:
    """Return everything that a record makes public, in a form in which outputs are compared.

    The frame and the certificate only if `framed`. What belongs to `planned`, the plan of all releases, is left out.
    """
    state = record.__getstate__()
    hidden = ("plan", "values", "promise", "_make_frame")
    spread = getattr(planned, "spread", hidden)
    return {
        "value": record.values,
        "order": record.reading_order(),
        **{f"interval {level}": record.interval(level) for level in LEVELS},
        "names": ["\n".join(map(str, column)) for column in record.labels().values()],
        "state": {key: value for key, value in state.items() if key not in hidden and value is not spread},
        "frame": _labels(record) if framed else None,
        "text": (" ".join(repr(record).split()), record.summary()),
        "certificate": _certificate(record) if framed else None,
    }


def _certificate(record: ReleaseRecord) -> str:
    """Return the certificate as a text, but for its time and its place in a ledger."""
    shown = {key: value for key, value in record.certificate.items() if key not in ("made", "ledger")}
    return json.dumps(shown, default=str)


def _labels(record: ReleaseRecord) -> Any:
    """Return what a frame shows beside the cells that were compared already; all of it if it has other cells."""
    frame, columns = record.frame, record.columns()
    same = list(frame.columns) == list(columns) and all(
        _plain(frame[name]) == _plain(shown) for name, shown in columns.items()
    )
    return (list(columns), [str(kind) for kind in frame.dtypes], str(frame.index)) if same else frame


def _plain(cells: Any) -> list[Any]:
    """Return cells as plain values, of which missing ones are None, whatever a frame calls them."""
    listed = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    return [None if one is pd.NA or one != one else one for one in listed]


@sealed
def release(
    about: Policy | Session,
    query: Any,
    epsilon: Any,
    *,
    consistent: bool = False,
    nonnegative: bool = False,
    order: str | None = None,
    item: str | None = None,
    samples: int = SAMPLES,
    alpha: float = 1e-6,
    seconds: float = SECONDS,
    progress: Progress | None = None,
) -> SampledAudit:
    """Audit a whole release, rows and post-processing included, on made-up neighbours; nobody's rows are opened.

    `about` is a policy, or a session, whose rows and budget are left alone. All other arguments are those of the
    release; `order` and `item` those of a session, or else the policy's. At most `samples` releases are made of either
    data set, fewer if that would take longer than `seconds`; the result says how many, and what stays beyond so many.
    `docs/audits.md` has an example.
    """
    policy = about.policy if isinstance(about, Session) else about
    if not isinstance(policy, Policy):
        rule = f"must be a policy or a session, not {kind_of(about)}"
        raise PolicyError(rule, key="about", fix="Use tc.Policy.load(..).")
    policy = policy.about(order=order, item=item)
    whole = WholeRelease(policy, query, as_epsilon(epsilon), consistent, nonnegative)
    with watched("auditing", progress) as told:
        return audit_pairs(whole, samples, alpha, seconds, told)


def seconds_each(releases: int) -> float:
    """Return how long the audit of each of so many releases of a job should take."""
    return min(SECONDS, SECONDS_OF_A_JOB / max(releases, 1))


def audit_pairs(
    whole: WholeRelease, samples: int, alpha: float, seconds: float = SECONDS, progress: Progress | None = None
) -> SampledAudit:
    """Look at made-up pairs, each with its share of alpha and of the time, until a leak is found; return the worst."""
    check_samples(samples, alpha)
    pairs = whole.pairs()
    whole.release(pairs[0].hidden, READ_FIRST + 1)  # rows are read, and tables of noise made
    start = time.process_time()  # not how busy the machine is, which would decide about the power of the audit
    for one in whole.release(pairs[0].hidden, 10):
        canonical(one)  # what is compared takes about as long
    each = (time.process_time() - start) / 10
    most = max(FEWEST, min(samples, int(seconds / each / 2 / len(pairs))))
    found: list[tuple[str, SampledAudit]] = []
    for at, pair in enumerate(pairs):
        one = sampled(
            whole.release,
            pair.hidden,
            pair.cover,
            whole.epsilon,
            most,
            alpha / len(pairs),
            workers=1,
            progress=_share(progress, at, len(pairs)),
        )
        found.append((pair.words, one))
        if one.verdict == Verdict.LEAK_FOUND:  # the rest would only say how large it is elsewhere
            break
    words, worst = max(found, key=lambda pair: pair[1].lower_bound)
    witness = replace(worst.witness, event=f"{words}: {worst.witness.event}")
    return replace(worst, witness=witness, alpha=alpha, events=MOST_EVENTS * len(pairs))


def _share(progress: Progress | None, at: int, many: int) -> Progress | None:
    return None if progress is None else lambda share: progress((at + share) / many)
