"""The picture of the README: the top of the demo's report, as a browser shows it.

    CHROMIUM=chromium python tools/draw_report.py

Runs the demo in a temporary folder and writes `docs/report.png`, with any Chromium; none comes with the package. Every
release has new noise, so every picture has other numbers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "report.png"
SIZE = "760,760"


def main() -> int:
    """Run the demo and draw the top of its report."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(folder) / "demo"
        subprocess.run([sys.executable, "-m", "tacit", "demo", "--out", str(demo)], check=True)
        (report,) = demo.glob("*/report.html")
        # without a sandbox, since containers seldom allow one: the page is ours and fetches nothing
        browser = [os.environ.get("CHROMIUM", "chromium"), "--headless", "--no-sandbox", "--disable-gpu"]
        browser += ["--hide-scrollbars", f"--window-size={SIZE}", f"--user-data-dir={folder}/browser"]
        subprocess.run([*browser, f"--screenshot={PICTURE}", report.as_uri()], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
