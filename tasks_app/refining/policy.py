"""What configuration and chance decide about one task: read and drawn by the caller, so that refining stays a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers from 0 to below 1, drawn for one task. The defaults choose nothing that is rarer than always."""

    event_service: float = 0.999999
    push_status: float = 0.999999
    move_input: float = 0.999999


@dataclass(frozen=True, slots=True)
class Transforms:
    """Transformations that analysis tasks get when they name none: served by this site, or URLs.

    `preprocess` is for event picking, and for lists of good runs.
    """

    athena: str = "athena_command"
    container: str = "run_command"
    general: str = "run_command"
    build_athena: str = "build_command"
    build_general: str = "build_command"
    preprocess: str = "preprocess_command"
    merge: str = "merge_command"


@dataclass(frozen=True, slots=True)
class Conversion:
    """When tasks that may become event service do.

    `pool_events` is the number of events that the pool shall hold (None: no conversion), `events_in_pool` what it
    holds; `most_pending` and `pending` count converted tasks that wait; `since_last_s` is None when there was none yet.
    """

    pool_events: int | None = None
    events_in_pool: int = 0
    most_pending: int | None = None
    pending: int = 0
    most_priority: int | None = None
    least_priority: int | None = None
    since_last_s: float | None = None
    pause_s: float = 300.0
    consumers: int = 1
    sites: int = 1

    def allows(self, priority: int) -> bool:
        """Whether a task of this priority may be converted now."""
        if self.pool_events is None or self.events_in_pool >= self.pool_events:
            return False
        if self.most_pending is not None and self.pending >= self.most_pending:
            return False
        if self.since_last_s is not None and self.since_last_s < self.pause_s:
            return False
        low, high = self.least_priority, self.most_priority
        return (low is None or priority >= low) and (high is None or priority <= high)


SUPER_PRIORITY: Final = 1500


@dataclass(frozen=True, slots=True)
class Policy:
    """The configuration that the refiners of a VO read, and the numbers drawn for this task.

    Percentages are None where the installation's defaults decide. `target_walltime_h`: longest
    job of an analysis, in hours. `jobset_id`: the number of the request of the user.
    """

    push_status_percent: float | None = None
    move_input_percent: float = 0.0
    draws: Draws = field(default_factory=Draws)
    conversion: Conversion = field(default_factory=Conversion)
    transforms: Transforms = field(default_factory=Transforms)
    out_disk_kb: int = 500
    target_walltime_h: int | None = None
    max_core_count: int = 16
    super_users: frozenset[str] = frozenset()
    super_group_users: frozenset[str] = frozenset()
    jobset_id: int | None = None

    def least_priority(self, user: str, working_group: str | None) -> int | None:
        """Tasks of super users, and those that super group users submit for a working group, have at least this priority,
        with which they get turns before others; None for all other tasks."""
        is_super = user in self.super_users or (user in self.super_group_users and working_group is not None)
        return SUPER_PRIORITY if is_super else None


def chosen(percent: float | None, draw: float) -> bool | None:
    """Whether a number from 0 to below 1 is among the given percentage; None when there is none."""
    return None if percent is None else draw * 100 < percent
