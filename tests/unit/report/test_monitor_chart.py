"""Charts of monitors: what was published is drawn, and what is left out is said."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from tacit.monitor import monitor
from tacit.monitor.history import History, PlaceVerdict
from tacit.report.charts import monitor_charts as charts
from tacit.report.charts.monitor_charts import history_table, read_points, verdict_text, write_monitor
from tacit.report.charts.release_charts import chart_png, chart_svg

POLICY = tc.Policy(
    tc.Domain({"visited": tc.Items(["gym", "<cafe>", "park"])}), secrets=tc.secrets.values({"visited": [1]})
)
POINTS = {"gym": (40.0, -74.0), "<cafe>": (40.1, -74.1), "park": (40.2, -74.3)}


def place_history(monkeypatch: pytest.MonkeyPatch, **clock: Any) -> History:
    script = iter([None, 9, None, None, None])
    monkeypatch.setattr(monitor, "decide", lambda *_, **__: next(script))
    with tc.PlaceMonitor(POLICY, place="gym", threshold=5, epsilon=1, window=2, **clock) as watched:
        for _ in range(5):
            watched.feed(None)
        return watched.history


def map_history(monkeypatch: pytest.MonkeyPatch, **options: Any) -> History:
    monkeypatch.setattr(monitor, "decide_all", lambda counts, *_, **__: np.where(counts >= 2, counts, -1))
    with tc.MapMonitor(POLICY, threshold=2, epsilon=1, **options) as watched:
        watched.feed(iter(["gym", "gym", "park"]))
        watched.feed(iter(["park"]))
        return watched.history


def data_of(drawn: Any) -> list[Any]:
    """Return the rows of every layer."""
    said = drawn.to_dict()
    layers = said.get("layer", [said])
    return [layer["data"]["values"] for layer in layers]


def subtitle(drawn: Any) -> str:
    return " ".join(drawn.to_dict()["title"]["subtitle"])


def test_a_place_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts.monitor_chart(place_history(monkeypatch))
    bands, threshold, _, dots = data_of(drawn)
    words = ["certainly below", "above", "paused", "certainly below", "certainly below"]
    assert [row["verdict"] for row in bands] == words
    # a bar reaches as far as the count can: below the threshold, or up to the noisy count
    assert [row["top"] for row in bands][:2] == [4, 9]
    assert threshold == [{"at": 5}]
    assert [(row["lower"], row["upper"]) for row in dots] == [(7, 9)]
    assert "in all" not in subtitle(drawn)
    assert "Epsilon 1 for one visit; window of 2 steps." in subtitle(drawn)
    assert drawn.to_dict()["description"] == (
        "5 steps: certainly below 3 times, above 1 times, paused 1 times. Last: certainly below."
    )
    assert chart_png(drawn).startswith(b"\x89PNG")


def test_dates_are_drawn_as_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts.monitor_chart(place_history(monkeypatch, start="2024-03-01", every="1 day"))
    bands = data_of(drawn)[0]
    assert bands[1]["from"] == pd.Timestamp("2024-03-02").timestamp() * 1000
    assert bands[1]["text"] == "2024-03-02"
    assert "2024-03-01" in chart_svg(drawn)


def test_a_map_has_a_point_for_each_place(monkeypatch: pytest.MonkeyPatch) -> None:
    history = map_history(monkeypatch)
    drawn = charts.monitor_chart(history, points=POINTS)
    (rows,) = data_of(drawn)
    assert {row["place"]: row["kind"] for row in rows} == {
        "gym": "alarm",
        "<cafe>": "certainly safe",
        "park": "alarm",
    }
    assert rows[0]["kind"] == "certainly safe"  # alarms last, so that they lie on top
    assert "After 2 decisions: 1 certainly safe, 2 alarmed" in subtitle(drawn)
    earlier = charts.monitor_chart(history, points=POINTS, step=0)
    assert sum(row["kind"] == "alarm" for row in data_of(earlier)[0]) == 1
    assert "After 1 decision: 2 certainly safe, 1 alarmed" in subtitle(earlier)
    assert "<cafe>" not in chart_svg(drawn)  # not as markup


def test_what_a_map_leaves_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    history = map_history(monkeypatch)
    some = charts.monitor_chart(history, points={"gym": (1, 2), "bar": (3, 4)})
    assert "2 places without a point are left out." in subtitle(some)
    with pytest.raises(tc.PlanError, match="must have a point for a monitored place"):
        charts.monitor_chart(history, points={"bar": (3, 4)})
    monkeypatch.setattr(charts, "MOST_POINTS", 20)
    monkeypatch.setattr(charts, "FEWEST_SAFE", 1)
    policy = tc.Policy(tc.Domain({"visited": tc.Items(50)}), secrets=tc.secrets.values({"visited": [1]}))
    with tc.MapMonitor(policy, threshold=10**9, epsilon=1) as watched:
        watched.feed(None)
        many = charts.monitor_chart(watched.history, points={n: (n, n) for n in range(50)})
    assert "Of 50 safe places one in 3 is shown, and all alarms." in subtitle(many)
    assert len(data_of(many)[0]) == 17


def test_without_points_a_map_is_drawn_by_update(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = charts.monitor_chart(map_history(monkeypatch, at="noon", time=None))
    (rows,) = data_of(drawn)
    assert [(row["update"], row["kind"], row["places"]) for row in rows] == [
        (1, "certainly safe", 2),
        (1, "alarm", 1),
        (2, "certainly safe", 1),
        (2, "alarm", 2),
    ]
    assert drawn.to_dict()["title"]["text"] == ["Places below 2 visits at noon"]


def test_a_map_that_is_not_decided_yet_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    history = map_history(monkeypatch, decide_at=[7])
    assert charts.monitor_text(history) == "Nothing was decided yet."
    drawn = charts.monitor_chart(history, points=POINTS)
    assert {row["kind"] for row in data_of(drawn)[0]} == {"not decided yet"}
    assert "Nothing was decided yet." in subtitle(drawn)
    assert data_of(charts.monitor_chart(history)) == [[]]
    later = map_history(monkeypatch, decide_at=[1, 7])
    assert "After 1 decision: 1 certainly safe, 2 alarmed" in subtitle(charts.monitor_chart(later, points=POINTS))


def test_long_histories_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MOST_STEPS", 3)
    drawn = charts.monitor_chart(place_history(monkeypatch))
    assert len(data_of(drawn)[0]) == 3
    assert "The last 3 of 5 steps." in subtitle(drawn)


def test_points_come_from_files_frames_and_mappings(tmp_path: Path) -> None:
    with (tmp_path / "points.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [["place", "Latitude", "lng"], ["gym", "40", "-74"], ["cafe", "?", "1"], ["7", 1, 2]]
        )
    expected = {"gym": (40.0, -74.0), "7": (1.0, 2.0)}
    assert read_points(tmp_path / "points.csv") == expected
    assert read_points(pd.DataFrame({"venue": ["gym", 7], "lat": [40, 1], "lon": [-74, 2]})) == expected
    assert read_points({"gym": (40, -74), 7: [1, 2]}) == expected


@pytest.mark.parametrize(
    "wrong", [7, "gone.csv", {"gym": 7}, pd.DataFrame({"lat": [1], "lon": [2]}), {"gym": ("a", "b")}]
)
def test_points_without_places_are_refused(wrong: Any) -> None:
    with pytest.raises(tc.PlanError, match=r"^points must"):
        read_points(wrong)


def test_points_are_for_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tc.PlanError, match="is for monitors of many places"):
        charts.monitor_chart(place_history(monkeypatch), points=POINTS)


def test_what_is_published_is_written_all_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for _ in range(2):
        write_monitor(map_history(monkeypatch), {"epsilon": "1"}, tmp_path / "out", "noon", POINTS)
        write_monitor(place_history(monkeypatch), {"epsilon": "1"}, tmp_path / "out", "gym", POINTS)
    names = ["gym.certificate.json", "gym.csv", "gym.svg", "noon.certificate.json", "noon.csv", "noon.svg"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == names
    assert json.loads((tmp_path / "out" / "gym.certificate.json").read_text()) == {"epsilon": "1"}
    assert (tmp_path / "out" / "noon.csv").read_text().splitlines()[1].startswith("gym,already alarmed,0,2,")
    assert all(file.stat().st_mode & 0o777 == 0o644 for file in (tmp_path / "out").iterdir())


def test_a_table_for_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    table = history_table({"gym": place_history(monkeypatch), "noon": map_history(monkeypatch)})
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    assert cells[0] == ["gym", "noon"]
    assert cells[-1] == ["step 4: certainly below", "1 certainly below"]
    assert verdict_text(PlaceVerdict(0, 0, "gym", "paused")) == "paused"
    with tc.PlaceMonitor(POLICY, place="gym", threshold=5, epsilon=1, window=2) as unused:
        assert str(next(iter(history_table({"x": unused.history}).columns[-1].cells))) == "nothing yet"
        assert charts.monitor_text(unused.history) == "No step was taken yet."
