"""What a session pays for that is no answer to a question: a published table."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy.typing as npt

from tacit.ledger.ledger import Receipt
from tacit.plan.tally import Tally
from tacit.policy.policy import Policy
from tacit.rows.engines import MakeFrame


class Publication(Protocol):
    """Something that is made of counts and is no answer to a question: a table. It keeps its own promise.

    It is public, as a plan is: `make` alone sees true counts, once, and returns what may be seen of them.
    """

    @property
    def policy(self) -> Policy:
        """The policy along whose edges it promises its epsilon."""

    @property
    def epsilon(self) -> Fraction:
        """What it costs."""

    @property
    def tallies(self) -> Sequence[Tally]:
        """What is counted for it."""

    def make(
        self, counts: Sequence[npt.NDArray[Any]], frame: MakeFrame, dataset: str, receipt: Receipt | None
    ) -> object:
        """Draw, and return what is published."""
