"""Priorities of the jobs of users: who has many jobs comes later, and who has had few is moved up. Pure.

Formulas of the JEDI brokerage document (boosts). Jobs of scouts and of merging have priorities of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

TOP: Final = 1000
"""The priority of a user's first job, and of the jobs that are moved up."""
JOBS_A_UNIT: Final = 5
"""Jobs of a user that lower the priority of the next ones by one."""

Who = tuple[str, str]
"""(user, working group); one of the two is empty."""


def user_job_priority(serial: int, *, offset: int = 0) -> int:
    """int(1000 + offset - serial / 5): `serial` counts the user's jobs that have not ended. The document's further term, for
    the part of a quota of CPU time that is used, has nothing to act on here: users have no such quota."""
    return int(TOP + offset - serial / JOBS_A_UNIT)


@dataclass(frozen=True, slots=True)
class Boost:
    """A user or a group whose jobs get a fixed offset to their priority, until a moment."""

    name: str
    is_group: bool
    offset: int
    until: datetime | None = None


def read_boosts(value: Any) -> tuple[Boost, ...]:
    """The items of USER_JOB_PRIO_BOOST_DICTS: objects with name, type (user or group), prio and expire (YYYYMMDD, the
    day from whose beginning in UTC it no longer holds, or null). Items of another form are left out."""
    found = []
    for item in value if isinstance(value, list) else ():
        try:
            name, kind, offset, expire = item["name"], item["type"], int(item["prio"]), item.get("expire")
            until = datetime.strptime(str(expire), "%Y%m%d").replace(tzinfo=UTC) if expire else None
        except (AttributeError, KeyError, TypeError, ValueError):
            continue
        if isinstance(name, str) and name and kind in ("user", "group"):
            found.append(Boost(name, kind == "group", offset, until))
    return tuple(found)


def boost_of(boosts: Iterable[Boost], user: str, group: str, now: datetime) -> int | None:
    """The largest offset that holds for a user's jobs of a working group (empty for none); None without any."""
    held = (
        boost.offset
        for boost in boosts
        if boost.name == (group if boost.is_group else user) and (boost.until is None or now < boost.until)
    )
    return max(held, default=None)


@dataclass(frozen=True, slots=True)
class SerialPriority:
    """The priorities of jobs of one task that are made one after another.

    base     priority of the task's jobs as it is asked for
    serial   jobs of the user that have not ended, before these
    boost    a fixed offset, with which the number of jobs does not count; None without
    """

    base: int
    serial: int = 0
    boost: int | None = None

    def at(self, index: int) -> int:
        """The priority of the job of that index, counted from 0."""
        if self.boost is not None:
            return user_job_priority(0, offset=self.base - TOP + self.boost)
        return user_job_priority(self.serial + index, offset=self.base - TOP)

    def after(self, jobs: int) -> SerialPriority:
        return SerialPriority(self.base, self.serial + jobs, self.boost)


@dataclass(frozen=True, slots=True)
class GivenPriorities:
    """The priorities of jobs that are made together, one for each."""

    each: Sequence[int]

    def at(self, index: int) -> int:
        """The priority of the job of that index, counted from 0."""
        return self.each[index]


@dataclass(frozen=True, slots=True)
class SiteUsage:
    """Jobs of one user or group at one site: `used` run or have ended lately, `activated` wait for a pilot, the most
    urgent of them with priority `highest`."""

    who: Who
    site: str
    used: int
    activated: int = 0
    highest: int = 0


@dataclass(frozen=True, slots=True)
class Raise:
    """Up to `jobs` activated jobs with at least priority `least`, the most urgent first, are raised by `by`."""

    who: Who
    site: str
    jobs: int
    least: int
    by: int


def massage(usages: Iterable[SiteUsage], quotas: Mapping[Who, float] | None = None) -> list[Raise]:
    """Move up jobs of users who have had less than the mean of all users, at sites where they have had less than the
    mean of the users there: as many as they lack, divided over these sites and by 1 + their used quota.

    The most urgent of them gets priority 1000; the slice that moves with it is as wide as so many jobs make it.
    """
    rows = sorted(usages, key=lambda row: (row.who, row.site))
    own: dict[Who, int] = defaultdict(int)
    there: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        own[row.who] += row.used
        there[row.site].append(row.used)
    if not own:
        return []
    mean = sum(own.values()) / len(own)
    lacking = [
        row
        for row in rows
        if row.activated and own[row.who] < mean and row.used < sum(there[row.site]) / len(there[row.site])
    ]
    sites: dict[Who, int] = defaultdict(int)
    for row in lacking:
        sites[row.who] += 1
    found = []
    for row in lacking:
        jobs = min(int((mean - own[row.who]) / sites[row.who] / (1 + (quotas or {}).get(row.who, 0.0))), row.activated)
        if jobs > 0 and row.highest < TOP:
            found.append(Raise(row.who, row.site, jobs, row.highest - jobs // JOBS_A_UNIT, TOP - row.highest))
    return found
