"""Mistakes on purpose, published or classic, each with the broken line marked: what an audit has to find.

`planted` maps a name to a `PlantedLeak`. A leak that an audit misses is a hole in the audit; a repaired version that it
accuses is a false alarm.

In reading order:

    planted_leak  what a planted leak is
    calibration   noise of the wrong shape or size
    decisions     mechanisms that decide what they show or count next
    releases      whole releases, the machine that runs them, and records that are left out
    tables        tables that break a promise about estimates, and the attacks that show it

>>> len(planted)
38
>>> planted["naive-suppression"].mistake
'releases every record but the sensitive ones, which the gaps give away'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tacit.audit.selfcheck.planted import calibration, decisions, releases  # noqa: F401 - they plant their leaks
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak, leaks

__all__ = ["PlantedLeak", "planted"]

planted: Mapping[str, PlantedLeak] = MappingProxyType(leaks)
