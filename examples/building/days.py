"""What a day in a room comes to: arrival, leaving, absences and the share of the work hours, one row for each.

    python examples/building/days.py                      # makes the rows of this folder anew: made up, always the same
    python examples/building/days.py --data FILE --into FOLDER
                                                          # the same from a Parquet file: space or room, time, occupied

`earlier.csv` has the first three quarters of the days: an earlier survey, which is public, and says how attributes
depend on each other. `days.csv` has the rest: the private rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from tacit import noise
from tacit_reproductions.document_001.occupancy import Occupancy, days_of, made_up_occupancy, occupancy_of_file

HERE = Path(__file__).parent
PUBLIC = 0.75  # of the days


def made_up() -> Occupancy:
    """Return twelve rooms over forty weeks, the same for everybody."""
    with noise.replayed(noise.Keystream(key=b"the building of the worked case.")):
        return made_up_occupancy(rooms=12, days=280)


def frame_of(occupancy: Occupancy) -> pd.DataFrame:
    """Return the days on the grid that the policy declares: times by the half hour or hour, shares by fifths."""
    days = days_of(occupancy)
    return pd.DataFrame(
        {
            "room": [occupancy.rooms[room] for room in days.room],
            "day": days.date.astype(str),
            "arrival": on_grid(days.arrival, 480, 720, 30),
            "leaving": on_grid(days.leaving, 840, 1140, 60),
            "absences": on_grid(days.absences, 0, 6, 1),
            "mean_absence": on_grid(days.mean_absence, 0, 120, 15),
            "share": on_grid(100 * days.share, 0, 100, 20),
        }
    )


def on_grid(values: np.ndarray, low: int, high: int, step: int) -> np.ndarray:
    """Return each number as the nearest one that the policy has."""
    return np.clip(low + step * np.floor((values - low) / step + 0.5).astype(int), low, high)


def split(days: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the earlier days, which are public, and the later ones."""
    dates = np.sort(days["day"].unique())
    first_private = dates[int(PUBLIC * len(dates))]
    earlier = days["day"] < first_private
    return days[earlier].reset_index(drop=True), days[~earlier].reset_index(drop=True)


def write(occupancy: Occupancy, folder: Path) -> None:
    """Write both files."""
    for name, frame in zip(("earlier", "days"), split(frame_of(occupancy)), strict=True):
        frame.to_csv(folder / f"{name}.csv", index=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write earlier.csv and days.csv.")
    parser.add_argument("--data", type=Path, help="a Parquet file with space or room, time and occupied")
    parser.add_argument("--into", type=Path, default=HERE, help="the folder that they are written into")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    write(made_up() if given.data is None else occupancy_of_file(given.data, given.data.stem), given.into)


if __name__ == "__main__":
    main()
