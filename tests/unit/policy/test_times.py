"""Times by equal steps: their texts, their ends, what is refused, and what a distance on the clock costs."""

import datetime
import itertools
import zoneinfo
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.policy.attributes import Times
from tacit.policy.policy_file import policy_schema

BERLIN = Times("2024-03-30", "2024-03-31", step="30 minutes", zone="Europe/Berlin")
HIDDEN = tc.Policy(tc.Domain({"t": BERLIN, "v": tc.Integers(0, 9)}), tc.secrets.values({"v": [9]}))


@pytest.mark.parametrize(
    ("step", "start", "end", "size"),
    [
        ("hour", "2024-02-28T00:00", "2024-03-01T23:00", 72),
        ("15 minutes", "2024-02-28T00:00", "2024-03-01T23:45", 288),
        ("90 seconds", "2024-02-28T00:00:00", "2024-03-01T23:58:30", 2880),
        ("7 hours", "2024-02-28T00:00", "2024-03-01T22:00", 11),
        ("day", "2024-02-28", "2024-03-01", 3),
        ("2 days", "2024-02-28", "2024-03-01", 2),
    ],
)
def test_days_stand_for_their_first_and_last_step(step: str, start: str, end: str, size: int) -> None:
    one = Times("2024-02-28", datetime.date(2024, 3, 1), step=step)
    assert (one.start, one.end, one.size) == (start, end, size)
    assert one == Times(start, end, step=step)
    assert [one.position(value) for value in one.every_value()] == list(range(size))


def test_a_moment_of_another_zone_is_told_on_the_clock() -> None:
    noon = datetime.datetime(2024, 3, 31, 12, tzinfo=datetime.UTC)
    assert BERLIN.canonical(noon) == "2024-03-31T14:00"
    assert BERLIN.canonical(noon.astimezone(zoneinfo.ZoneInfo("Asia/Tokyo"))) == "2024-03-31T14:00"
    assert BERLIN.canonical(pd.Timestamp("2024-03-31 02:30")) == "2024-03-31T02:30"  # no instant has it


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Times("2024-01-01", "2024-01-02", step="month"), "times.step must be a number of seconds, minutes"),
        (lambda: Times("2024-01-01", "2024-01-02", step=15), "got 15. For instance 'hour' or '15 minutes'"),
        (lambda: Times("2024-01-01", "2024-01-02", zone="Berlin"), "Did you mean 'Europe/Berlin'"),
        (lambda: Times("2024-01-01", "2024-01-02", zone="localtime"), "times.zone must be the name of a time zone"),
        (lambda: Times("2024-02-30", "2024-03-02"), "There is no such day: 2024-02 has 29"),
        (lambda: Times("2024-02-01T24:00", "2024-03-02"), "or a time such as 2024-03-01T14:00"),
        (lambda: Times("2024-02-01T00:00Z", "2024-03-02"), "without a zone; got '2024-02-01T00:00Z'"),
        (lambda: Times("2024-03-02", "2024-02-01"), "times must not end before it starts"),
        (lambda: Times("2024-03-02", "2024-03-02", otherwise="2024-03-03T00:00"), "otherwise must be a time in steps"),
        (lambda: BERLIN.position("2024-03-31T01:10"), "The step that it lies in is '2024-03-31T01:00'"),
        (lambda: BERLIN.position("2024-03-31"), "The step that it lies in is '2024-03-31T00:00'"),
        (lambda: BERLIN.position("morning"), "Write it like '2024-03-30T00:00'"),
        (lambda: Times("2024-03-02", "2024-03-02").position(datetime.datetime.now(datetime.UTC)), "must be a time in"),
    ],
)
def test_what_is_refused(make: Callable[[], object], said: str) -> None:
    with pytest.raises(tc.PolicyError) as refused:
        make()
    assert said in str(refused.value)


def test_a_policy_of_times_is_written_and_read_back() -> None:
    domain = tc.Domain({"t": BERLIN, "s": Times("2024-03-30", "2024-03-31", step="second", otherwise="clip")})
    policy = tc.Policy(domain, tc.secrets.within(60, "t") | tc.secrets.partition("s", width=3600))
    assert tc.Policy.from_yaml(policy.to_yaml()) == policy
    assert "t up to a distance of 60 minutes" in str(policy)
    assert "times" in str(policy_schema())
    with pytest.raises(tc.PolicyError, match=r"step must be a number of seconds.*; got '15'. For instance 'hour'"):
        tc.Policy.from_yaml("domain: {t: {times: [2024-03-30, 2024-03-31], step: 15}}\nsecrets: everything")
    text = """
    domain: {t: {times: [2024-03-30 00:00, 2024-03-31T23:30:00], step: 30 minutes, zone: Europe/Berlin}}
    secrets:
      partition: {attribute: t, blocks: [2024-03-30T00:00..2024-03-31T05:30, 2024-03-31T06:00..2024-03-31T23:30]}
    """
    assert tc.Policy.from_yaml(text).domain["t"] == BERLIN


def test_an_edge_is_as_long_as_its_distance_on_the_clock() -> None:
    """Brute force: every pair of values, and what each running count and histogram changes along an edge."""
    times = Times("2024-03-31T00:00", "2024-03-31T04:00", step="30 minutes", zone="Europe/Berlin")
    policy = tc.Policy(tc.Domain({"t": times}), tc.secrets.within(60, "t"))
    values = times.every_value()
    edges = [pair for pair in itertools.product(values, values) if policy.has_edge(*({"t": one} for one in pair))]
    clock = [datetime.datetime.fromisoformat(one) for one in values]
    near = [(a, b) for a in clock for b in clock if a != b and abs(a - b) <= datetime.timedelta(minutes=60)]
    assert [tuple(map(datetime.datetime.fromisoformat, pair)) for pair in edges] == near
    running = {value: np.cumsum(np.arange(len(values)) == at) for at, value in enumerate(values)}
    assert tc.largest_step(tc.cumulative("t"), policy).l1 == max(abs(running[a] - running[b]).sum() for a, b in edges)
    assert tc.largest_step(tc.histogram("t"), policy).l1 == 2


def test_where_compares_with_the_starts_of_steps() -> None:
    rows = pd.DataFrame({"t": ["2024-03-30T23:59", "2024-03-31T00:00", "2024-03-31T12:00Z"], "v": 1})
    session = tc.Session(HIDDEN, rows, budget=1)  # when is no secret, so counts of it are exact
    for where, many in (("t >= '2024-03-31T00:00'", 2), ("t > '2024-03-31T14:00'", 0), ("t < '2024-03-30T23:30'", 0)):
        assert session.release(tc.count(where), epsilon=0.1).values.tolist() == [many]


def test_times_name_no_rows() -> None:
    session = tc.Session(HIDDEN, pd.DataFrame({"t": ["2024-03-30T10:00"], "v": [1]}), budget=1)
    with pytest.raises(tc.DataRefused, match="must not name rows: which time a moment is hangs on the clocks"):
        session.release(tc.true_records("v", key="t"), epsilon=0.5)
    assert session.remaining == 1


@pytest.mark.parametrize(
    "one",
    [
        BERLIN,
        Times("2023-12-28T05:00", "2024-03-02", step="7 hours"),
        Times("1969-12-30", "1970-01-07", step="2 days"),
        tc.Dates("2023-12-28", "2024-03-02"),
        tc.Dates("1969-11", "2024-03", by="month"),
        tc.Dates("1969-Q4", "1971-Q2", by="quarter"),
    ],
)
def test_parts_are_those_of_the_moment_when_a_step_starts(one: Times | tc.Dates) -> None:
    def told(value: str, part: str) -> int:
        if "Q" in value:
            return int(value[:4])
        moment = datetime.datetime.fromisoformat(value if len(value) > 7 else f"{value}-01")
        return moment.isoweekday() if part == "weekday" else int(getattr(moment, part))

    tests: dict[str, Callable[[int], bool]] = {"== 2": lambda n: n == 2, "in [1, 3, 5]": lambda n: n in (1, 3, 5)}
    tests |= {"> 1": lambda n: n > 1, "!= 12": lambda n: n != 12, "<= 2": lambda n: n <= 2}
    domain = tc.Domain({"t": one})
    for part, (asked, holds) in itertools.product(one.parts, tests.items()):
        if part == "weekday" and "12" in asked:
            continue
        answer = tc.where(f"t.{part} {asked}").compile(domain)
        found = [answer.of_record({"t": place}) for place in range(one.size)]
        assert found == [holds(told(value, part)) for value in one.every_value()], (part, asked)


def test_parts_are_counted_where_rows_are(tmp_path: Path) -> None:
    moments = pd.to_datetime(np.arange(1711750000, 1711900000, 977), unit="s", utc=True)
    pd.DataFrame({"t": moments, "v": 1}).to_csv(tmp_path / "rows.csv", index=False)
    session, clock = tc.Session(HIDDEN, tmp_path / "rows.csv", budget=1), moments.tz_convert("Europe/Berlin")
    inside = clock[(clock >= "2024-03-30") & (clock < "2024-04-01")]
    late = int(((inside.hour >= 22) | (inside.day_of_week == 6)).sum())
    where = (tc.col("t").hour >= 22) | (tc.col("t").weekday == 7)
    assert session.release(tc.count(where), epsilon=0.1).values.tolist() == [late]
    with pytest.raises(tc.PlanError, match=r"must be a part that a .* has; got 'row'. Ask for t.hour or t.weekday"):
        session.plan(tc.count("t.row == 1"), epsilon=0.1)


def test_the_first_and_the_last_days_of_the_calendar_have_clocks() -> None:
    for end, zone, ahead in (("9999-12-31", "Asia/Shanghai", 28_800), ("0001-01-01", "Asia/Shanghai", 29_143)):
        times = Times(end, end, zone=zone)
        ((start, offset),) = times.offsets
        assert offset == ahead
        assert start < times.first - ahead  # UTC of the first value
