"""The warning that is printed on everything that shows true counts."""

from __future__ import annotations

from typing import Final

PRIVATE: Final = "For the curator only: this reads private data. It is part of no release; do not publish what it says."
