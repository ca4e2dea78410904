"""Numbers on workers and pilots: by queue, errors of batch systems, pilots without a job, versions, lost heartbeats.

Workers are counted over the newest ones up to the cap of all counts; jobs over the last 24 hours.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from tasks_app.domain.fingerprints import normalised
from tasks_app.domain.states import JOB_AT_PILOT
from tasks_app.domain.words import COUNT_CAP
from tasks_app.models.worker import WORKER_ENDED, WORKER_OPEN

RECENTLY: Final = timedelta(hours=24)
REPORTS_FRESH: Final = timedelta(minutes=60)
SHOWN: Final = 20
LONGEST_MESSAGE: Final = 240
# One look into the index a worker: with NOT EXISTS the server reads all that was ever handed out.
_NEWEST = """
WITH taken AS MATERIALIZED (
    SELECT harvesterid, workerid, computingsite, status, left(diagmessage, %(longest)s) AS said
      FROM harvester_workers ORDER BY id DESC LIMIT %(cap)s),
newest AS MATERIALIZED (
    SELECT t.*, r.had IS NULL AS empty FROM taken t LEFT JOIN LATERAL (
           SELECT 1 AS had FROM harvester_rel_jobs_workers r
            WHERE r.harvesterid = t.harvesterid AND r.workerid = t.workerid LIMIT 1) r ON true)
SELECT 'queue', computingsite, status, count(*), count(*) FILTER (WHERE empty), 0 FROM newest GROUP BY 2, 3
UNION ALL
SELECT 'instance', harvesterid, status, count(*), count(*) FILTER (WHERE empty), 0 FROM newest GROUP BY 2, 3
UNION ALL
SELECT 'said', said, '', count(*), 0, count(DISTINCT computingsite) FROM newest
 WHERE status = ANY(ARRAY['failed', 'cancelled', 'missed']) AND said <> '' GROUP BY 2
UNION ALL
SELECT 'open', computingsite, status, count(*), 0, 0 FROM harvester_workers
 WHERE status = ANY(ARRAY['pending', 'submitted', 'ready', 'idle', 'running']) GROUP BY 2, 3
UNION ALL
SELECT 'reported', computingsite, status, sum(n_workers)::bigint, 0, 0 FROM harvester_worker_stats
 WHERE lastupdate > %(fresh)s GROUP BY 2, 3
"""
_PILOTS = """
SELECT 'version', key, sum(finished)::bigint, sum(failed)::bigint FROM job_ends
 WHERE dimension = 'version' AND hour > %(since)s GROUP BY 2
UNION ALL
SELECT 'lost', f.computingsite, count(*), 0 FROM error_fingerprints p JOIN job_failures f ON f.fingerprint_id = p.id
 WHERE p.category = 'lost' AND f.ended > %(since)s GROUP BY 2
UNION ALL
SELECT 'ended', site, count(*), 0 FROM api_tokens
 WHERE worker <> '' AND kind = 'pilot' AND expires > %(since)s AND expires <= %(now)s GROUP BY 2
"""


_LOCAL = """
SELECT t.site, t.worker, t.created, j.pandaid, j.jobstatus, j.modificationhost, j.heartbeat_at
  FROM (SELECT id, site, worker, created FROM api_tokens
         WHERE worker <> '' AND kind = 'pilot' AND NOT revoked AND expires > %(now)s ORDER BY id DESC LIMIT %(most)s) t
  LEFT JOIN jobs j ON j.computingsite = t.site AND j.workerid = t.worker AND j.jobstatus = ANY(%(at_pilot)s)
 ORDER BY t.site, t.id DESC, j.pandaid
"""


@dataclass(frozen=True, slots=True)
class LocalPilot:
    """A pilot that a local service keeps, with a job that it has now; without one `job` is None."""

    queue: str
    number: str
    started: datetime
    job: int | None
    status: str | None
    node: str | None
    heartbeat: datetime | None


def local_pilots(now: datetime, most: int) -> list[LocalPilot]:
    """Pilots of local services that still hold the token that was made for each, at most the newest `most`. One query."""
    with connection.cursor() as cursor:
        values: dict[str, Any] = {"now": now, "most": most, "at_pilot": sorted(JOB_AT_PILOT)}
        cursor.execute(_LOCAL, values)
        return [LocalPilot(*row) for row in cursor.fetchall()]


@dataclass(slots=True)
class Line:
    """Workers of one queue or instance. `open` and `reported` by state; the rest are of the newest workers."""

    name: str
    open: dict[str, int] = field(default_factory=dict)
    reported: dict[str, int] = field(default_factory=dict)
    ended: int = 0
    failed: int = 0
    empty: int = 0

    @property
    def open_listed(self) -> list[tuple[str, int]]:
        return [(status, self.open[status]) for status in WORKER_OPEN if self.open.get(status)]

    @property
    def reported_listed(self) -> list[tuple[str, int]]:
        return sorted(self.reported.items())

    @property
    def empty_percent(self) -> float | None:
        """Ended workers that never had a job, in percent of all that ended without a fault."""
        well = self.ended - self.failed
        return 100 * self.empty / well if well > 0 else None

    @property
    def failed_percent(self) -> float | None:
        return 100 * self.failed / self.ended if self.ended else None


@dataclass(frozen=True, slots=True)
class BatchError:
    """Messages of batch systems that say the same: one of them word for word, and how many workers and queues it hit."""

    fingerprint: str
    example: str
    workers: int
    queues: int


@dataclass(frozen=True, slots=True)
class Version:
    name: str
    finished: int
    failed: int

    @property
    def failure_percent(self) -> float | None:
        ended = self.finished + self.failed
        return 100 * self.failed / ended if ended else None


@dataclass(frozen=True, slots=True)
class Workers:
    """All of it. `newest` workers were looked at, `whole` sums them up; `local_ended` are pilots of local services by queue."""

    queues: list[Line]
    instances: dict[str, Line]
    errors: list[BatchError]
    versions: list[Version]
    lost: list[tuple[str, int]]
    local_ended: list[tuple[str, int]]
    newest: int
    whole: Line

    @property
    def is_capped(self) -> bool:
        return self.newest >= COUNT_CAP


def workers(now: datetime) -> Workers:
    """Two statements."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, {"longest": LONGEST_MESSAGE, "cap": COUNT_CAP, "fresh": now - REPORTS_FRESH})
        counted = cursor.fetchall()
        cursor.execute(_PILOTS, {"since": now - RECENTLY, "now": now})
        pilots = cursor.fetchall()
    queues: dict[str, Line] = {}
    instances: dict[str, Line] = {}
    said: list[tuple[str, int, int]] = []
    whole, newest = Line(""), 0
    for kind, name, status, number, empty, sites in counted:
        if kind == "said":
            said.append((name, number, sites))
            continue
        lines = instances if kind == "instance" else queues
        line = lines.setdefault(name, Line(name))
        if kind == "open":
            line.open[status] = number
        elif kind == "reported":
            line.reported[status] = number
        elif status in WORKER_ENDED:
            _add(line, status, number, empty)
        if kind == "queue":
            newest += number
            if status in WORKER_ENDED:
                _add(whole, status, number, empty)
    versions = [Version(name, finished, failed) for kind, name, finished, failed in pilots if kind == "version"]
    lost = [(name, number) for kind, name, number, _ in pilots if kind == "lost"]
    ended = [(name, number) for kind, name, number, _ in pilots if kind == "ended"]
    busiest = sorted(queues.values(), key=lambda line: (-sum(line.open.values()), line.name))
    return Workers(
        busiest,
        instances,
        _errors(said),
        sorted(versions, key=lambda version: -(version.finished + version.failed))[:SHOWN],
        sorted(lost, key=lambda pair: (-pair[1], pair[0]))[:SHOWN],
        sorted(ended, key=lambda pair: (-pair[1], pair[0]))[:SHOWN],
        newest,
        whole,
    )


def _add(line: Line, status: str, number: int, empty: int) -> None:
    line.ended += number
    if status == "finished":
        line.empty += empty
    else:
        line.failed += number


def _errors(said: list[tuple[str, int, int]]) -> list[BatchError]:
    """Messages by fingerprint, the most frequent first. A fingerprint's queues are at least those of one message."""
    groups: dict[str, list[Any]] = defaultdict(lambda: ["", 0, 0])
    for text, number, sites in sorted(said, key=lambda row: -row[1]):
        group = groups[normalised(text)]
        group[0] = group[0] or text
        group[1] += number
        group[2] = max(group[2], sites)
    errors = [BatchError(print_, example, number, sites) for print_, (example, number, sites) in groups.items()]
    return sorted(errors, key=lambda error: -error.workers)[:SHOWN]
