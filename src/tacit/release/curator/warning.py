"""Whom true counts are for: the sentence that everything says which shows them, wherever it is shown."""

from __future__ import annotations

from typing import Final

PRIVATE: Final = "For the curator only: this reads private data. It is part of no release; do not publish what it says."
