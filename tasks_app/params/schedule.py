"""Schedules of periodic tasks: when jobs are made, how many, and until when. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from croniter import croniter

SHORTEST_S = 60
LONGEST_S = 366 * 86_400
MOST_COUNTED = 1000
"""Missed times of a cron line are counted up to here."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Either `every_s` seconds or by a cron line in UTC, `jobs` are made, the last time not after `until`.

    With `most_open`, a time is skipped while that many jobs' inputs would be unprocessed.
    """

    every_s: int | None = None
    cron: str = ""
    jobs: int = 1
    until: datetime | None = None
    most_open: int | None = None

    def first(self, now: datetime) -> datetime:
        """The first time: at once, or when the cron line says."""
        return now if self.every_s else self.next_after(now, now)

    def next_after(self, due: datetime, now: datetime) -> datetime:
        """The first time after `now` on the grid that `due` is on. Times between are not made up for."""
        if self.every_s:
            step = timedelta(seconds=self.every_s)
            return due + step * max((now - due) // step + 1, 1)
        found: datetime = croniter(self.cron, max(due, now)).get_next(datetime)
        return found

    def missed(self, due: datetime, now: datetime) -> int:
        """Times after `due` that have gone by up to `now`."""
        if self.every_s:
            return max((now - due) // timedelta(seconds=self.every_s), 0)
        times = croniter(self.cron, due)
        for count in range(MOST_COUNTED):
            if times.get_next(datetime) > now:
                return count
        return MOST_COUNTED

    def words(self) -> str:
        """The schedule as a clause: "every hour", "at the times of 0 3 * * * (UTC)"."""
        if not self.every_s:
            return f"at the times of {self.cron} (UTC)"
        for unit, seconds in (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1)):
            if self.every_s % seconds == 0:
                number = self.every_s // seconds
                return f"every {unit}" if number == 1 else f"every {number} {unit}s"
        raise AssertionError("the period is a whole number of seconds")


def is_cron(text: str) -> bool:
    """Whether a text is a cron line of five fields that has a next time."""
    if len(text.split()) != 5 or not croniter.is_valid(text):
        return False
    try:
        croniter(text, datetime(2000, 1, 1, tzinfo=UTC)).get_next(datetime)
    except ValueError:
        return False
    return True


def moment(text: str) -> datetime | None:
    """A time of ISO 8601, in UTC when it names no zone; None when it is none."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def schedule_of(raw: Mapping[str, Any]) -> Schedule | None:
    """The schedule in a checked dictionary of task parameters; None when the task has none."""
    given = raw.get("periodic")
    if not given:
        return None
    return Schedule(
        given.get("every_s"),
        given.get("cron") or "",
        given.get("jobs") or 1,
        moment(given["until"]) if given.get("until") else None,
        given.get("most_open"),
    )
