"""What the tabs of a task ask of the database: sets for a whole page at once.

Of a task with very many jobs, the newest ones stand for all; the pages say so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from brokerage_app.grid.written_storage import written_storages
from brokerage_app.models import DatasetReplica, QueueEndpoint, VerdictRecord
from tasks_app.ddm.local_files import file_url
from tasks_app.domain.states import JOB_AT_PILOT, JOB_FINAL, JOB_QUEUED
from tasks_app.domain.units import TELLS_EFFICIENCY
from tasks_app.drawing.flows import Moved
from tasks_app.explaining.stored_verdicts import by_queue, queue_of
from tasks_app.refining.offered import MERGES
from tasks_app.transfers.storages import local_storages

MOST_JOBS: Final = 20_000
MOST_FLOWING: Final = 2_000
STEPS: Final = 96


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """Jobs of a task at one site. Times are medians in seconds; `efficiency` is the median of CPU time a core, in percent."""

    site: str
    jobs: int
    queued: int
    running: int
    finished: int
    failed: int
    walltime_s: float | None
    queued_s: float | None
    efficiency: float | None
    verdict: str
    is_chosen: bool | None

    @property
    def success(self) -> float | None:
        ended = self.finished + self.failed
        return 100 * self.finished / ended if ended else None


_SITES = """
WITH j AS (SELECT computingsite, jobstatus, starttime, endtime, creationtime, cpuconsumptiontime,
                  coalesce(nullif(actualcorecount, 0), nullif(corecount, 0), 1) AS cores
             FROM jobs WHERE jeditaskid = %(task)s ORDER BY pandaid DESC LIMIT %(most)s)
SELECT coalesce(computingsite, ''), count(*),
       count(*) FILTER (WHERE jobstatus = ANY(%(queued)s)), count(*) FILTER (WHERE jobstatus = ANY(%(running)s)),
       count(*) FILTER (WHERE jobstatus = 'finished'), count(*) FILTER (WHERE jobstatus = 'failed'),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM endtime - starttime))
         FILTER (WHERE jobstatus = 'finished' AND endtime >= starttime),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM starttime - creationtime))
         FILTER (WHERE starttime >= creationtime),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY 100.0 * cpuconsumptiontime / cores / extract(epoch FROM endtime - starttime))
         FILTER (WHERE jobstatus = 'finished' AND endtime > starttime AND {tells})
  FROM j GROUP BY 1 ORDER BY 2 DESC, 1
""".format(  # noqa: S608 - a condition of ours
    tells=TELLS_EFFICIENCY.format(cpu="cpuconsumptiontime", core_s="cores * extract(epoch FROM endtime - starttime)")
)


def sites(task_id: int, latest: VerdictRecord | None, sizes: Collection[str] = ()) -> list[SiteFacts]:
    """Sites where a task has jobs, the most jobs first, then those that the broker chose without a job there. One query.

    sizes   names of the sizes of jobs of which queues have variants: jobs are at the queue, verdicts are on variants
    """
    parameters: dict[str, Any] = {
        "task": task_id,
        "most": MOST_JOBS,
        "queued": sorted(JOB_QUEUED),
        "running": sorted(JOB_AT_PILOT),
    }
    with connection.cursor() as cursor:
        cursor.execute(_SITES, parameters)
        rows = cursor.fetchall()
    said: dict[str, tuple[str, bool]] = {}
    if latest is not None:
        for skip in by_queue(latest.skipped or [], latest.chosen, sizes):
            said[skip.queue] = ("; ".join(reason.sentence for reason in skip.reasons), False)
        for choice in reversed(latest.chosen):
            said[queue_of(choice[0], sizes)[0]] = (f"chosen with weight {choice[1]:.4g}", True)
    found = []
    for site, jobs, queued, running, finished, failed, walltime, waited, efficiency in rows:
        sentence, is_chosen = said.pop(site, ("", None))
        found.append(
            SiteFacts(
                site,
                jobs,
                queued,
                running,
                finished,
                failed,
                _number(walltime),
                _number(waited),
                _number(efficiency),
                sentence,
                is_chosen,
            )
        )
    found += [
        SiteFacts(site, 0, 0, 0, 0, 0, None, None, None, text, True) for site, (text, chosen) in said.items() if chosen
    ]
    return found


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Profile:
    """Jobs of a task over time, at `ends`, each by how far they had come: lists of numbers by name, in drawing order."""

    ends: list[datetime]
    layers: dict[str, list[int]]
    made: list[int]


_PROFILE = """
WITH j AS MATERIALIZED (SELECT jobstatus, creationtime, starttime, coalesce(endtime, modificationtime) AS ended
                          FROM {table} WHERE jeditaskid = %(task)s),
     times AS (SELECT min(creationtime) AS first,
                      max(CASE WHEN jobstatus = ANY(%(final)s) THEN ended ELSE %(now)s END) AS last FROM j)
SELECT times.first, times.last, kind, width_bucket(extract(epoch FROM at), extract(epoch FROM times.first),
       extract(epoch FROM times.last) + 1, %(steps)s) AS step, count(*)
  FROM times, LATERAL (
    SELECT 'made' AS kind, creationtime AS at FROM j
    UNION ALL SELECT 'started', starttime FROM j WHERE starttime IS NOT NULL
    UNION ALL SELECT 'ended unstarted', ended FROM j WHERE starttime IS NULL AND jobstatus = ANY(%(final)s)
    UNION ALL SELECT jobstatus, ended FROM j WHERE jobstatus = ANY(%(final)s)) moments
 WHERE times.first IS NOT NULL GROUP BY 1, 2, 3, 4
"""


def profile(task_id: int, now: datetime, *, archived: bool = False) -> Profile | None:
    """How the jobs of a task came and went; None when there are none. One query."""
    statement = _PROFILE.format(table="jobs_archive" if archived else "jobs")
    with connection.cursor() as cursor:
        cursor.execute(statement, {"task": task_id, "final": sorted(JOB_FINAL), "now": now, "steps": STEPS})
        rows = cursor.fetchall()
    if not rows:
        return None
    first, last = rows[0][0], rows[0][1]
    step = (last - first + timedelta(seconds=1)) / STEPS
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * STEPS)
    for _, _, kind, number, n in rows:
        counts[kind][min(max(number, 1), STEPS) - 1] += n

    def so_far(*kinds: str) -> list[int]:
        total, found = 0, []
        for i in range(STEPS):
            total += sum(counts[kind][i] for kind in kinds)
            found.append(total)
        return found

    finished, failed = so_far("finished"), so_far("failed")
    others = so_far("cancelled", "closed")
    made, started, never = so_far("made"), so_far("started"), so_far("ended unstarted")
    ended = [sum(at) for at in zip(finished, failed, others, strict=True)]
    running = [max(s - (e - u), 0) for s, e, u in zip(started, ended, never, strict=True)]
    waiting = [max(m - e - r, 0) for m, e, r in zip(made, ended, running, strict=True)]
    layers = {
        "finished": finished,
        "failed": failed,
        "cancelled or closed": others,
        "running": running,
        "waiting": waiting,
    }
    return Profile([first + step * (i + 1) for i in range(STEPS)], layers, made)


_FLOWS = """
WITH j AS (SELECT pandaid, computingsite, processingtype FROM jobs
            WHERE jeditaskid = %(task)s AND jobstatus = 'finished' ORDER BY pandaid DESC LIMIT %(most)s)
SELECT f.type, coalesce(f.dataset, ''), j.computingsite,
       CASE f.type WHEN 'input'
            THEN coalesce((SELECT max(s.name) FROM unnest(%(names)s::text[], %(begins)s::text[]) s (name, begins)
                            WHERE starts_with(f.surl, s.begins)), '')
            ELSE coalesce(f.destinationse, '') END,
       j.processingtype IS NOT DISTINCT FROM %(merges)s, count(*), coalesce(sum(f.fsize), 0)
  FROM j JOIN job_files f ON f.pandaid = j.pandaid
 WHERE f.type IN ('input', 'pseudo_input', 'output', 'log') GROUP BY 1, 2, 3, 4, 5
"""


def flows(task_id: int) -> list[Moved]:
    """What the newest finished jobs of a task read and wrote, by places. Five queries.

    The place of an input is the storage of this machine at which it was read; of others the endpoint of the site itself that
    has the dataset, else one of those that have it. Merge jobs read what lies at the storage of their queue.
    """
    folders = [(name, path) for name, one in local_storages().items() for path in {one.path, one.path.resolve()}]
    values: dict[str, Any] = {
        "task": task_id,
        "most": MOST_FLOWING,
        "merges": MERGES,
        "names": [name for name, _ in folders],
        "begins": [f"{file_url(path)}/" for _, path in folders],
    }
    with connection.cursor() as cursor:
        cursor.execute(_FLOWS, values)
        rows = cursor.fetchall()
    if not rows:
        return []
    datasets = {row[1] for row in rows if row[0] == "input"}
    queues = {row[2] for row in rows if row[2]}
    having: dict[str, list[str]] = defaultdict(list)
    for dataset, endpoint in DatasetReplica.objects.filter(dataset__in=datasets).values_list("dataset", "endpoint"):
        having[dataset].append(endpoint)
    near: dict[str, set[str]] = defaultdict(set)
    for queue, endpoint in QueueEndpoint.objects.filter(queue_id__in=queues, order_read__isnull=False).values_list(
        "queue_id", "endpoint_id"
    ):
        near[queue].add(endpoint)
    storage = written_storages(queues)
    return [_moved(row, having, near, storage) for row in rows if row[0] != "pseudo_input"]


def _moved(row: Sequence[Any], having: Any, near: Any, storage: Any) -> Moved:
    kind, dataset, site, destination, merges, files, size = row
    if kind == "input":
        places = sorted(having.get(dataset, ()))
        place = destination or next((p for p in places if p in near[site]), places[0] if places else "")
        place = place or (storage.get(site) if merges else "") or "unknown place"
        return Moved(kind, dataset, place, site or "no site", files, int(size))
    return Moved(
        kind, dataset, site or "no site", destination or storage.get(site) or "unknown place", files, int(size)
    )
