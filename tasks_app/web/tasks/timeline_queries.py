"""What timelines ask of the database: a handful of statements for a task with any number of jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection
from django.db.models import Q
from django.urls import reverse
from django.utils.http import urlencode

from brokerage_app.models import QueueStatusLog
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import happened, kind_of, title_of
from tasks_app.domain import words
from tasks_app.domain.states import JOB_FINAL, JOB_OPEN
from tasks_app.domain.task_commands import COMMANDS
from tasks_app.drawing.lanes import Bar
from tasks_app.drawing.spans import Logged, Moment, Span
from tasks_app.models import Command, Job, JobStatusLog, RetryNote, ScoutReport, Task, TaskStatusLog, UsualDuration
from tasks_app.web.frame import keyset_pages

LOG_ROWS: Final = 2000
MOST_MARKS: Final = 300
"""Up to so many jobs are drawn one by one, more are counted in bins."""
BINS: Final = 60
SITES: Final = 12
SAMPLED_ABOVE: Final = 10_000
MOST_COUNTED: Final = 1_000_000
EVENTS: Final = 200
CONFIGURATION: Final = ("gdpconfig", "workqueue", "globalshare", "resourcetype")
_EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SEEN_ELSEWHERE: Final = frozenset({*map(str, COMMANDS), "submit", "avoid site"})
"""What the audit trail has of a task that its list of commands or its status log has as well; changes, too."""


def task_log(task_id: int) -> list[Logged]:
    """Oldest first; of a very long log, its end."""
    rows = TaskStatusLog.objects.filter(task_id=task_id).order_by("-id")[:LOG_ROWS]
    return [Logged(row.at, row.status, row.by, row.reason) for row in reversed(rows)]


def job_log(job_id: int) -> list[Logged]:
    rows = JobStatusLog.objects.filter(job_id=job_id).order_by("-id")[:LOG_ROWS]
    return [Logged(row.at, row.status, row.by, row.reason, row.site or "") for row in reversed(rows)]


def usual(task: Task) -> dict[str, float]:
    """Median seconds of stays of tasks of this kind, by state."""
    of_kind = UsualDuration.objects.filter(
        task_type=task.task_type or "", label=task.prod_source_label or "", processing_type=task.processing_type or ""
    )
    return dict(of_kind.values_list("status", "median_s"))


@dataclass(frozen=True, slots=True)
class JobsInTime:
    """Jobs of a task between two times: in bins, one by one when they are few, and the sites at which they were."""

    spans: list[Span] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    sites: list[Span] = field(default_factory=list)
    site_names: tuple[str, ...] = ()
    total: int = 0
    every: int = 1
    """One job in so many was looked at: above 1, counts are estimates."""


_COUNTED = """
WITH chosen AS MATERIALIZED (SELECT pandaid FROM jobs WHERE jeditaskid = %(task)s AND hashint8(pandaid) & %(mask)s = 0)
SELECT grouping(computingsite) = 0, computingsite,
       CASE WHEN grouping(bin) = 0 THEN bin END, jobstatus, count(*), min(began), max(changed)
  FROM (SELECT computingsite, jobstatus, coalesce(starttime, creationtime) AS began, modificationtime AS changed,
               least(width_bucket(extract(epoch FROM modificationtime)::float8, %(since)s, %(until)s, %(bins)s), %(bins)s) AS bin
          FROM jobs JOIN chosen USING (pandaid) WHERE modificationtime >= %(from)s AND creationtime < %(to)s) j
 GROUP BY GROUPING SETS ((computingsite, jobstatus), (bin, jobstatus))
"""


def jobs_of(task_id: int, since: datetime, until: datetime) -> JobsInTime:
    """Three statements. A job stands in the bin of its last change: for one that has ended, that is when it ended.

    Of a task with more than SAMPLED_ABOVE jobs, every second, fourth, … is looked at, and stands for so many.
    """
    every = sample_of(keyset_pages.capped_count(Job.objects.filter(task_id=task_id), MOST_COUNTED))
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNTED,
            {
                "task": task_id,
                "from": since,
                "to": until,
                "since": since.timestamp(),
                "until": until.timestamp(),
                "bins": BINS,
                "mask": every - 1,
            },
        )
        rows = [(*row[:4], row[4] * every, *row[5:]) for row in cursor.fetchall()]
    by_bin = [row for row in rows if not row[0]]
    total = sum(row[4] for row in by_bin)
    of_sites = [row for row in rows if row[0]]
    sites, names = _sites(task_id, of_sites), tuple(sorted({row[1] for row in of_sites if row[1]}))
    few = _one_by_one(task_id, since, until) if total <= MOST_MARKS else []
    return JobsInTime(few, _bars(task_id, since, until, by_bin), sites, names, total, every)


def sample_of(jobs: int) -> int:
    """Of how many jobs one is looked at: a power of two, 1 for all."""
    every = 1
    while jobs > SAMPLED_ABOVE * every:
        every *= 2
    return every


def _list(**filters: Any) -> str:
    return f"{reverse('dashboard:jobs')}?{urlencode(filters)}"


def _bars(task_id: int, since: datetime, until: datetime, rows: Iterable[tuple[Any, ...]]) -> list[Bar]:
    width = (until - since) / BINS
    order = {status: place for place, status in enumerate(words.JOB_TONE_ORDER)}
    found = []
    for _, _, number, status, count, _, _ in sorted(rows, key=lambda row: (row[2], -order.get(row[3], 0))):
        start = since + width * (max(number, 1) - 1)
        end = start + width
        url = _list(task=task_id, status=status, changed_after=start.isoformat(), changed_before=end.isoformat())
        found.append(Bar(start, end, status, count, url))
    return found


def _sites(task_id: int, rows: Iterable[tuple[Any, ...]]) -> list[Span]:
    """A bar for each of the sites with most jobs."""
    by_site: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_site.setdefault(row[1] or "", []).append(row)
    ranked = sorted(by_site.items(), key=lambda pair: (-sum(row[4] for row in pair[1]), pair[0]))
    found = []
    for site, of_site in ranked[:SITES]:
        counts = {row[3]: row[4] for row in of_site}
        jobs, failed = sum(counts.values()), counts.get("failed", 0)
        is_open = any(status in JOB_OPEN for status in counts)
        tone = "bad" if failed * 2 > jobs else "warn" if failed * 10 > jobs else "run" if is_open else "ok"
        of_which = ", ".join(f"{words.count(n)} {status}" for status, n in sorted(counts.items()))
        found.append(
            Span(
                "sites",
                f"{site or 'no site'} · {words.plural(jobs, 'job')}",
                tone,
                min(row[5] for row in of_site),
                None if is_open else max(row[6] for row in of_site),
                reason=of_which,
                url=_list(task=task_id, site=site),
                count=jobs,
            )
        )
    return found


def _one_by_one(task_id: int, since: datetime, until: datetime) -> list[Span]:
    found = Job.objects.filter(task_id=task_id, modification_time__gte=since, creation_time__lt=until)
    rows = found.order_by("id").values_list(
        "id", "status", "site", "attempt", "creation_time", "start_time", "end_time", "modification_time"
    )
    return [job_span(*row) for row in rows[:MOST_MARKS]]


def job_span(
    job_id: int,
    status: str,
    site: str | None,
    attempt: int | None,
    created: datetime,
    started: datetime | None,
    ended: datetime | None,
    changed: datetime,
) -> Span:
    """A job as a bar from its start (or, while it has none, from when it was made) to its end."""
    begin = started or created
    end = max(ended or changed, begin) if status in JOB_FINAL else None
    waited = f"waited {words.duration((started - created).total_seconds())} before; " if started else ""
    which = f"attempt {attempt}, " if attempt is not None else ""
    return Span(
        "jobs",
        str(job_id),
        words.tone(status),
        begin,
        end,
        reason=f"{which}{waited}{status} at {site or 'no site'}",
        url=reverse("dashboard:job", args=[job_id]),
    )


def commands_to(task: Task) -> list[Command]:
    """The latest commands to a task, the last one first. One query."""
    return list(Command.objects.filter(task_id=task.id).order_by("-id")[:EVENTS])


def task_events(
    task: Task, given: Iterable[Command], log_notes: list[Moment], sites: Iterable[str], since: datetime
) -> list[Moment]:
    """Commands, looks at scouts, changes of the configuration, statuses of queues, and the audit trail of the task."""
    found = list(log_notes)
    for command in given:
        why = "; ".join(filter(None, (command.comment, command.answer)))
        tone = "bad" if command.status == "refused" else "run"
        found.append(Moment(command.created, f"command {title_of(command.name).lower()}", tone, command.owner, why))
    for report in ScoutReport.objects.filter(task_id=task.id).order_by("-id")[:EVENTS]:
        what = f"scouts {report.outcome}" if report.scouts else "jobs measured"
        found.append(
            Moment(report.at, what, "ok" if report.outcome in ("passed", "measured") else "warn", reason=report.detail)
        )
    found += _audited(since, Q(object_type="task", object_id=str(task.id)), Q(object_type__in=CONFIGURATION))
    return found + _queues(sites, since)


def _audited(since: datetime, which: Q, *others: Q) -> list[Moment]:
    """The latest EVENTS entries of each kind that is asked for. One query, in which each has its own index."""
    first, *more = (AuditEntry.objects.filter(one, at__gte=since).order_by("-id")[:EVENTS] for one in (which, *others))
    entries = first.union(*more, all=True) if more else first
    found = []
    for entry in entries:
        is_own = entry.object_type in ("task", "job")
        if entry.object_type == "task" and (entry.action in _SEEN_ELSEWHERE or entry.action.startswith("change ")):
            continue
        thing = f"{kind_of(entry.object_type)} {entry.object_id}"
        what = title_of(entry.action).lower() if is_own else f"{thing}: {happened(entry.action)}"
        found.append(Moment(entry.at, what, "warn", entry.actor, entry.reason))
    return found


def _queues(sites: Iterable[str], since: datetime) -> list[Moment]:
    rows = (
        QueueStatusLog.objects.filter(queue__in=[s for s in sites if s], at__gte=since).exclude(old="").order_by("-id")
    )
    return [
        Moment(row.at, f"{row.queue} is {row.new}", words.tone(row.new), row.by, row.reason) for row in rows[:EVENTS]
    ]


def job_events(job_id: int, log_notes: list[Moment]) -> list[Moment]:
    """What the retry rules made of a job, and its audit trail."""
    found = list(log_notes)
    for note in RetryNote.objects.filter(job_id=job_id).order_by("id")[:EVENTS]:
        found.append(
            Moment(note.at, f"retry rules: {note.code}", "warn" if note.applied else "wait", reason=note.detail)
        )
    return found + _audited(_EVER, Q(object_type="job", object_id=str(job_id)))
