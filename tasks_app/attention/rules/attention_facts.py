"""What the rules judge. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TaskFact:
    """An open task. `since`: when its state, or its last progress, began. `waiting` files or jobs are left to do.

    `reason`: what the task or its last verdict says of itself, "" when nothing is known.
    """

    id: int
    name: str
    user: str
    status: str
    since: datetime
    reason: str = ""
    queued_jobs: int = 0
    missing_files: int = 0


@dataclass(frozen=True, slots=True)
class CopyFact:
    """Inputs of tasks that one cause keeps from arriving: `subject` is its storage, link or tape, `said` the cause in words.

    since    when the oldest was asked for; passes: whether they come without anybody's doing
    """

    code: str
    subject: str
    said: str
    files: int
    tasks: frozenset[int]
    since: datetime
    passes: bool = False


@dataclass(frozen=True, slots=True)
class TroubleFact:
    """An agent's work on a task, or on a job of it, that has failed unexpectedly `failures` times in a row."""

    agent: str
    kind: str
    subject: int
    failures: int
    since: datetime
    error: str
    task: int | None = None
    name: str = ""
    user: str = ""


@dataclass(frozen=True, slots=True)
class RateFact:
    """Jobs that ended at a site ("" is the whole grid) in the last hour, and in the same hour last week or the last day."""

    site: str
    finished: int
    failed: int
    wasted_core_s: int
    week_finished: int = 0
    week_failed: int = 0
    day_finished: int = 0
    day_failed: int = 0


@dataclass(frozen=True, slots=True)
class SiteFact:
    """A queue with open jobs. `pilots` are calls in three hours, None when nobody has counted for so long.

    uncalled_since   since when its oldest job waits, at a queue at which no pilot has ever asked for one; else None
    silent_since     since when jobs wait and no pilot asks for one although some did; None where they ask
    called_at        when a pilot asked for a job last, whether one waited or not; None when that is not kept
    """

    name: str
    status: str
    activated: int
    at_pilots: int
    pilots: int | None
    batch_jobs: int = 0
    last_start: datetime | None = None
    uncalled_since: datetime | None = None
    silent_since: datetime | None = None
    called_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GridFact:
    """All sites together. `idle_since`: the last moment at which a job ran, or none was queued; None: nobody has looked yet.

    `calls` are those of pilots that asked for jobs in the last `calls_h` hours. `idle_tasks` have waited for a job for longer
    than a task takes to get its first ones; counted while nothing runs only.
    """

    queued: int
    activated: int
    at_pilots: int
    idle_since: datetime | None
    calls: int
    calls_h: int
    idle_tasks: int = 0


@dataclass(frozen=True, slots=True)
class ClosedFact:
    """A queue that takes no jobs.

    old      what it was when it took some last, "" for one that never did; new: what it is now
    at       since when it takes none, whatever it has been meanwhile; None: always
    by       who gave it the status that it has now, and why
    jobs     its open jobs; queued: those that no pilot has fetched yet
    """

    name: str
    old: str
    new: str
    at: datetime | None
    by: str
    reason: str
    jobs: int = 0
    queued: int = 0


@dataclass(frozen=True, slots=True)
class StorageFact:
    """A storage that takes nothing, and the `queues` that take jobs and use it. `lack` says why, as it was at `at`."""

    name: str
    site: str
    lack: str
    queues: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class ShareFact:
    """A leaf of the tree of shares. HS23, means over the last day."""

    name: str
    percent: float
    running_hs: float
    target_hs: float
    queued_hs: float


@dataclass(frozen=True, slots=True)
class AgentFact:
    """An agent. `late_s`: seconds by which it is overdue; `late`: more than it may be.

    Of a paused one `pause` says who paused it, when and why, as far as that is kept; `tasks` are those that are its to work on.
    """

    name: str
    title: str
    paused: bool
    late: bool
    late_s: float
    errors_in_a_row: int
    last_error: str
    last_ended: datetime | None
    pause: str = ""
    paused_at: datetime | None = None
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class BacklogFact:
    """Things that wait for the machinery, and how long the oldest has."""

    name: str
    title: str
    number: int
    oldest_s: float
    path: str
