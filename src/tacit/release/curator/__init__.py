"""Checks and true counts for the curator alone, who holds the rows.

In reading order:

    private_counts  true counts for audits
    kept_rows       how much counts with so many rows per person
    row_check       which cells of the rows do not fit the domain, and which keys repeat
"""

from typing import Final

PRIVATE: Final = "For the curator only: this reads private data. It is part of no release; do not publish what it says."
