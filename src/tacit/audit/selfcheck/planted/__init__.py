"""Mistakes on purpose, published or classic, each with the broken line marked: what an audit has to find.

`planted` maps a name to a `PlantedLeak`. A leak that an audit misses is a hole in the audit; a repaired version that it
accuses is a false alarm.

In reading order:

    planted_leak   what a planted leak is
    blowfish       results that leak if they are copied as printed
    sparse_vector  the first of many counts above a threshold
    streams        alarms on streams
    top_k          top-k lists
    zooms          looks that decide what is counted next
    calibration    noise of the wrong shape or size
    records        records and tables that are released as they are
    machine        digits, processes and error texts
    releases       whole releases that go wrong around a sound mechanism

>>> len(planted)
37
>>> planted["naive-suppression"].mistake
'releases every record but the sensitive ones, which the gaps give away'
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tacit.audit.selfcheck.planted import (
    blowfish,
    calibration,
    machine,
    records,
    releases,
    sparse_vector,
    streams,
    top_k,
    zooms,
)
from tacit.audit.selfcheck.planted.planted_leak import PlantedLeak

__all__ = ["PlantedLeak", "planted"]

_THEMES = (blowfish, sparse_vector, streams, top_k, zooms, calibration, records, machine, releases)

planted: Mapping[str, PlantedLeak] = MappingProxyType({leak.name: leak for theme in _THEMES for leak in theme.PLANTED})
