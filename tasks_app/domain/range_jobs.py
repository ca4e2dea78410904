"""Kinds of jobs of event service by what they have to do with ranges, as `jobs.eventservice` has them. Pure.

`events_app.rules.event_jobs` says what each kind is.
"""

from __future__ import annotations

from typing import Final

MERGE: Final = 2
"""It merges what consumers have made of ranges."""
CLONE: Final = 3
"""It processes its whole input, as an ordinary job; of its jobset the output of one job counts."""
JUMBO: Final = 4
"""It takes ranges of all jobsets of its task."""
FINE: Final = 6
"""It is fine-grained: to PanDA's pilots like any other job, and whoever runs it reports its ranges."""
TAKING: Final = frozenset({1, JUMBO, 5, FINE})
"""They process ranges: reports on those count their events, and they store no output of the task themselves."""
BY_CHANNEL: Final = TAKING - {FINE}
"""Their payloads get ranges from any pilot, through a channel."""
MODES_OF_RANGES: Final = frozenset({1, 3})
"""What `jedi_tasks.eventservice` is of tasks whose jobs process ranges: of event service, and fine-grained ones."""
TOO_LONG: Final = "es_toolong"
"""The sub-status of a job that takes ranges, or merges their outputs, and ran for too long: others of its jobset go on."""
OF_SOME_EVENTS: Final = "fg_partial"
"""The sub-status of a finished job that is fine-grained and has left events to others."""
RANGE_PROGRAMS: Final = frozenset({"event_command", "zmumu_ranges"})
"""This site's own programs for consumers, which get ranges through the pilot's channel."""
WHOLE_PROGRAM: Final = "run_command"
"""This site's program for commands: jobs that take ranges get `event_command` in its place."""
_TAKING: Final = ", ".join(str(kind) for kind in sorted(TAKING))


def is_own_program(transformation: str) -> bool:
    """Whether the ranges of a job go to a program of this site, which reads each of them from one file."""
    name = transformation.rpartition("/")[2]
    return name == WHOLE_PROGRAM or name in RANGE_PROGRAMS


def counted_by_ranges(otherwise: str) -> str:
    """SQL: what `jobs.nevents` gets: of jobs of whose ranges the events are counted what it has, of others `otherwise`."""
    return f"CASE WHEN eventservice IN ({_TAKING}) THEN nevents ELSE {otherwise} END"


def is_by_channel(row: str = "") -> str:
    """SQL: the payload of a job gets ranges through a channel of its pilot."""
    return f"coalesce({row}eventservice IN ({', '.join(str(kind) for kind in sorted(BY_CHANNEL))}), false)"


def is_of_ranges(row: str = "") -> str:
    """SQL: a job takes ranges or merges their outputs, and ends with its jobset. `row` is its alias with a dot.

    Clones and fine-grained jobs end as ordinary ones, whose pilots are told.
    """
    return f"coalesce({row}eventservice IN (1, 2, 4, 5), false)"
