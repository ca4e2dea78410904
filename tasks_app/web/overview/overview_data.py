"""What the overview asks of the database: a fixed number of queries, each over a small table or a few hours of an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from brokerage_app.grid import samples
from brokerage_app.grid.samples import Series
from brokerage_app.models import GdpConfig, QueueStatusLog, Sample
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import happened, kind_of
from tasks_app.counts.statistics import JOB_COUNTS
from tasks_app.domain import words
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.drawing import sparklines, trends
from tasks_app.drawing.sparklines import Sparkline
from tasks_app.drawing.trends import Stack

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(hours=24)
SPARK_STEP: Final = timedelta(minutes=15)
POINTS: Final = 150
TABLE_ROWS: Final = 48
TOP: Final = 5
MOST_FAILURES: Final = 50_000
"""Failures of a window that are looked at, the latest ones."""
MOST_CHANGES: Final = 40
LOOKED_THROUGH: Final = 5000
"""Entries of the audit trail among which changes are looked for."""
CHANGING: Final = ("globalshare", "gdpconfig", "agent", "queue", "workqueue", "retryrule", "storageendpoint", "grid")
ELSEWHERE: Final = ("queue.status", "agent.run")
"""Actions on those that are told by the history of status, or change nothing."""


@dataclass(frozen=True, slots=True)
class Kpi:
    """A number of now, with the last day as a line."""

    label: str
    value: str
    unit: str
    url: str
    tone: str
    spark: Sparkline | None


@dataclass(frozen=True, slots=True)
class Live:
    """Jobs as they are now, or were a moment ago: samples are minutes old, and a new site has none.

    measured    when the last sample was taken; None: none yet
    at          when open jobs were counted, for all processes; None: not yet, and then the numbers of open jobs mean nothing
    finished    jobs that ended so since the last sample, for at most an hour; failed likewise
    """

    measured: datetime | None
    at: datetime | None
    running_jobs: int
    running_cores: int
    queued_jobs: int
    finished: int
    failed: int
    any_task: bool

    @property
    def as_of(self) -> datetime | None:
        """Of when the numbers of open jobs are."""
        return self.at or self.measured


_QUEUED = ", ".join(f"'{status}'" for status in sorted(JOB_QUEUED))
_LIVE = f"""
WITH last AS (SELECT max(at) AS at FROM samples WHERE site = '' AND gshare = '')
SELECT (SELECT at FROM last), (SELECT nullif(at, '-infinity') FROM statistics_refreshed WHERE name = %(counts)s),
       open.running, open.cores, open.queued, ended.finished, ended.failed, EXISTS (SELECT 1 FROM jedi_tasks)
  FROM (SELECT coalesce(sum(njobs) FILTER (WHERE jobstatus = 'running'), 0) AS running,
               coalesce(sum(ncores) FILTER (WHERE jobstatus = 'running'), 0) AS cores,
               coalesce(sum(njobs) FILTER (WHERE jobstatus IN ({_QUEUED})), 0) AS queued
          FROM job_counts WHERE %(share)s = '' OR gshare = %(share)s) open,
       (SELECT count(DISTINCT j.pandaid) FILTER (WHERE j.jobstatus = 'finished') AS finished,
               count(DISTINCT j.pandaid) FILTER (WHERE j.jobstatus = 'failed') AS failed
          FROM jobs_statuslog l JOIN jobs j USING (pandaid)
         WHERE l.modificationtime >= (SELECT greatest(at, %(since)s) FROM last)
           AND l.jobstatus IN ('finished', 'failed') AND j.jobstatus = l.jobstatus
           AND (%(share)s = '' OR j.gshare = %(share)s)) ended
"""  # noqa: S608 - states of ours


def live(now: datetime, share: str) -> Live:
    """What runs and waits by the latest count, and what ended since the last sample. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_LIVE, {"counts": JOB_COUNTS, "share": share, "since": now - HOUR})
        return Live(*cursor.fetchone())


@dataclass(frozen=True, slots=True)
class Normal:
    """How far it is true that nothing needs attention.

    last_gone   when the last thing went away; None: there was none for as long as that is kept
    failed      tasks, counted up to COUNT_CAP + 1
    """

    last_gone: datetime | None
    failed: int


_NORMAL = """
SELECT (SELECT max(gone_at) FROM attention_items),
       (SELECT count(*) FROM (SELECT 1 FROM jedi_tasks WHERE status = ANY(%(failed)s::text[]) AND modificationtime >= %(since)s
                               LIMIT %(most)s) t)
"""


def normal(failed: Sequence[str], since: datetime) -> Normal:
    """When the last item ended, and how many tasks have come into those states since a time. One query."""
    values: dict[str, Any] = {
        "failed": list(failed),
        "since": since,
        "most": words.COUNT_CAP + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NORMAL, values)
        return Normal(*cursor.fetchone())


def kpis(now: datetime, share: str, jobs_now: Live) -> list[Kpi]:
    """The strip of numbers, of the whole grid or of one share. Two queries.

    Open jobs are those of `jobs_now`, or before any count of the last sample; what ended is that of the samples of the last
    hour and after them. Tasks with no jobs are as of the last sample.
    """
    last_hour = _of_last_hour(now, share) if jobs_now.measured else []
    latest = next((row for row in last_hour if row["queued_jobs"] is not None), {})
    if jobs_now.at is not None:
        latest = {
            **latest,
            **{name: getattr(jobs_now, name) for name in ("running_jobs", "running_cores", "queued_jobs")},
        }
    found = samples.series(share=share, since=now - DAY, until=now, step=SPARK_STEP)
    finished, bad = (sum(row[name] for row in last_hour) + getattr(jobs_now, name) for name in ("finished", "failed"))
    failed = 100 * bad / (finished + bad) if finished + bad else None
    jobs, tasks, errors = reverse("dashboard:jobs"), reverse("dashboard:tasks"), reverse("dashboard:errors")

    def address(page: str, **given: str) -> str:
        return f"{page}?{urlencode({**given, **({'share': share} if share else {})}, safe=',')}"

    running = address(jobs, status="running")
    strip = [
        _gauge(found, latest, "running_jobs", "running jobs", running),
        _gauge(found, latest, "running_cores", "running cores", running),
        _gauge(found, latest, "queued_jobs", "queued jobs", address(jobs, status=",".join(sorted(JOB_QUEUED)))),
        Kpi(
            "finished in the last hour",
            words.count(finished) if last_hour or latest or finished else "–",
            "jobs",
            address(jobs, status="finished", window="1h"),
            "ok",
            _spark(found.per_hour("finished"), "Finished jobs an hour"),
        ),
        Kpi(
            "failure rate in the last hour",
            "–" if failed is None else f"{failed:.1f}",
            "%",
            address(errors, window="1h"),
            "wait" if failed is None else "bad" if failed >= 20 else "warn" if failed >= 10 else "ok",
            _spark(found.failure_percent(), "Failed jobs in percent of those that ended"),
        ),
    ]
    if not share:
        label = "task with no jobs" if latest.get("idle_tasks") == 1 else "tasks with no jobs"
        strip.append(_gauge(found, latest, "idle_tasks", label, address(tasks, idle="true")))
    return strip


def _gauge(found: Series, latest: Mapping[str, Any], name: str, label: str, url: str) -> Kpi:
    value = latest.get(name)
    return Kpi(
        label, words.count(value), "", url, "run" if value else "wait", _spark(found.values[name], label.capitalize())
    )


def _of_last_hour(now: datetime, share: str) -> list[dict[str, Any]]:
    """The samples themselves, the latest first: steps of a line may end before the latest one."""
    rows = Sample.objects.filter(site="", share=share, at__gt=now - HOUR, at__lte=now).order_by("-at")
    names = ("running_jobs", "running_cores", "queued_jobs", "idle_tasks", "finished", "failed")
    return [dict(zip(names, row, strict=True)) for row in rows.values_list(*names)]


def _spark(values: list[float | None], label: str) -> Sparkline | None:
    """What is not known is drawn as what was known last."""
    line, last = [], None
    for value in values:
        last = value if value is not None else last
        if last is not None:
            line.append(last)
    said = f"{label}, last 24 hours: {min(line):,.0f} to {max(line):,.0f}" if line else ""
    return sparklines.sparkline(line, label=said.replace(",", "\u202f") if line else "")


@dataclass(frozen=True, slots=True)
class Change:
    """Something that somebody, or the system, changed. `url` is "" where no page shows it."""

    at: datetime
    who: str
    what: str
    why: str
    url: str
    number: int = 0


def changes(since: datetime, until: datetime) -> list[Change]:
    """What changed in a window, the latest first: statuses of queues, and what people edited. Two queries."""
    moved = QueueStatusLog.objects.filter(at__gte=since, at__lt=until).exclude(old="").order_by("-id")
    found = [
        Change(
            row.at,
            row.by,
            f"{row.queue}: {row.old} → {row.new}",
            row.reason,
            reverse("dashboard:site", args=[row.queue]),
        )
        for row in moved[:MOST_CHANGES]
    ]
    latest = AuditEntry.objects.order_by("-id").values("id")[:LOOKED_THROUGH]
    entries = AuditEntry.objects.filter(id__in=latest, at__gte=since, at__lt=until, object_type__in=CHANGING)
    told = list(entries.exclude(action__in=ELSEWHERE).order_by("-id")[:MOST_CHANGES])
    named = _parameters_of(told)
    found += [
        Change(entry.at, entry.actor, _edited(entry, named.get(entry.object_id, "")), entry.reason, _page_of(entry))
        for entry in told
    ]
    return sorted(found, key=lambda change: change.at, reverse=True)[:MOST_CHANGES]


def _parameters_of(entries: list[AuditEntry]) -> dict[str, str]:
    """Names of the parameters whose rows were edited, by the number of the row. At most one query."""
    found, unnamed = {}, []
    for entry in (entry for entry in entries if entry.object_type == "gdpconfig"):
        details = entry.details if isinstance(entry.details, dict) else {}
        values = details.get("values", details)
        if isinstance(values, dict) and values.get("key"):
            row = GdpConfig(component=values.get("component") or "", key=values["key"], vo=values.get("vo") or None)
            found[entry.object_id] = str(row)
        elif entry.object_id.isdecimal():
            unnamed.append(int(entry.object_id))
    if unnamed:
        found |= {str(row.pk): str(row) for row in GdpConfig.objects.filter(pk__in=unnamed)}
    return found


def _edited(entry: AuditEntry, name: str) -> str:
    changed = (entry.details or {}).get("changed") if isinstance(entry.details, dict) else None
    how = ", ".join(map(str, changed))[:120] if isinstance(changed, dict) else ""
    what = f"{kind_of(entry.object_type)} {name or entry.object_id}: {happened(entry.action)}"
    return f"{what} ({how})" if how else what


def _page_of(entry: AuditEntry) -> str:
    page = {"globalshare": "share", "agent": "agent", "queue": "site"}.get(entry.object_type)
    return reverse(f"dashboard:{page}", args=[entry.object_id]) if page and entry.object_id else ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A change on the plot: where, and what it says when pointed at."""

    at: float
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Cores:
    """Running cores over time, as a plot and as rows of a table: (time, numbers of `names`)."""

    title: str
    plot: Stack
    names: list[str]
    rows: list[tuple[datetime, list[float | None]]]
    marks: list[Mark]


def running_cores(since: datetime, until: datetime, share: str, changed: list[Change]) -> Cores | None:
    """Of the whole grid by share, or of a share by site; None when there is no sample. One query."""
    step = samples.step_for(until - since, POINTS)
    found = samples.each(
        "site" if share else "share",
        since=since,
        until=until,
        step=step,
        names=["running_cores"],
        share=share,
        under_way=True,
    )
    values = {name: one.values["running_cores"] for name, one in found.items() if any(one.values["running_cores"])}
    if not found:
        return None
    ends = samples.steps(since, until, step, under_way=True)
    plot = trends.stacked(ends, values)
    span = (ends[-1] - ends[0]) or step
    # What changed since the last sample stands at the right edge.
    places = [(change, min(max((change.at - ends[0]) / span, 0.0), 1.0)) for change in changed]
    marks = [
        Mark(round(plot.left + place * (plot.right - plot.left), 1), f"{change.at:%H:%M} {change.what}", change.number)
        for change, place in places
    ]
    names = [layer.name for layer in plot.layers if layer.name in values]
    every = max(1, -(-len(ends) // TABLE_ROWS))
    rows = [(end, [values[name][i] for name in names]) for i, end in enumerate(ends) if i % every == 0]
    return Cores(
        f"Running cores of {share} by site" if share else "Running cores by activity", plot, names, rows[::-1], marks
    )


@dataclass(frozen=True, slots=True)
class Waster:
    """One row of a list of what wasted most: core hours, failed jobs, and its part of all that was wasted, in percent."""

    name: str
    url: str
    hours: float
    failed: int
    percent: float
    note: str = ""

    @property
    def said(self) -> str:
        return words.hours(self.hours)


@dataclass(frozen=True, slots=True)
class Waste:
    """What failed jobs of a window cost, by whom and where. `cut`: only the latest MOST_FAILURES are in it."""

    hours: float
    failed: int
    cut: bool
    lists: list[tuple[str, str, list[Waster]]]

    @property
    def said(self) -> str:
        return words.hours(self.hours)


_WASTE = """
SELECT g, fingerprint_id, r.computingsite, r.jeditaskid, produsername, wasted, failed,
       CASE WHEN f.component = '' THEN 'no error' ELSE f.component || ':' || f.code END, f.text, coalesce(t.taskname, '')
  FROM (
    SELECT grouping(fingerprint_id, computingsite, jeditaskid, produsername) AS g, fingerprint_id, computingsite, jeditaskid,
           produsername, sum(wasted_core_s)::float8 / 3600 AS wasted, count(*) AS failed,
           row_number() OVER (PARTITION BY grouping(fingerprint_id, computingsite, jeditaskid, produsername)
                                  ORDER BY sum(wasted_core_s) DESC, count(*) DESC) AS place
      FROM (SELECT fingerprint_id, computingsite, jeditaskid, produsername, wasted_core_s FROM job_failures
             WHERE ended >= %(since)s AND ended < %(until)s AND (%(share)s = '' OR gshare = %(share)s)
             ORDER BY ended DESC LIMIT %(most)s) f
     GROUP BY GROUPING SETS ((), (fingerprint_id), (computingsite), (jeditaskid), (produsername))) r
  LEFT JOIN error_fingerprints f ON f.id = r.fingerprint_id
  LEFT JOIN jedi_tasks t ON t.jeditaskid = r.jeditaskid
 WHERE place <= %(top)s ORDER BY g, place
"""
_ERRORS, _SITES, _TASKS, _USERS, _ALL = 0b0111, 0b1011, 0b1101, 0b1110, 0b1111


def waste(since: datetime, until: datetime, share: str, window: Mapping[str, str]) -> Waste:
    """The largest wasters of walltime in a window. One query. `window`: parameters of addresses that say it."""
    values: dict[str, Any] = {"since": since, "until": until, "share": share, "most": MOST_FAILURES, "top": TOP}
    by: dict[int, list[tuple[Any, float, int]]] = defaultdict(list)
    errors: dict[Any, tuple[str, str]] = {}
    tasks: dict[Any, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_WASTE, values)
        for g, error, site, task, user, wasted, failed, error_key, error_text, task_name in cursor.fetchall():
            key = next((one for one in (error, site, task, user) if one is not None), "")
            by[g].append((key, wasted or 0.0, failed))
            if g == _ERRORS and error_text is not None:
                errors[key] = (error_text, error_key)
            elif g == _TASKS:
                tasks[key] = task_name
    (_, hours, failed), *_ = by[_ALL] or [("", 0.0, 0)]

    def row(name: str, url: str, wasted: float, number: int, note: str = "") -> Waster:
        return Waster(name, url, wasted, number, 100 * wasted / hours if hours else 0.0, note)

    def jobs(**given: str) -> str:
        return f"{reverse('dashboard:jobs')}?{urlencode({**given, 'status': 'failed', **window})}"

    lists = [
        (
            "Errors",
            reverse("dashboard:errors"),
            [
                row(errors[key][0] or "no message", reverse("dashboard:error", args=[key]), wasted, n, errors[key][1])
                for key, wasted, n in by[_ERRORS]
                if key in errors
            ],
        ),
        (
            "Sites",
            reverse("dashboard:sites"),
            [
                row(key or "no site", reverse("dashboard:site", args=[key]) if key else "", wasted, n)
                for key, wasted, n in by[_SITES]
            ],
        ),
        (
            "Tasks",
            reverse("dashboard:tasks"),
            [
                row(
                    str(key) if key else "no task",
                    reverse("dashboard:task-errors", args=[key]) if key else "",
                    wasted,
                    n,
                    tasks[key] if key else "",
                )
                for key, wasted, n in by[_TASKS]
            ],
        ),
        ("Users", "", [row(key or "nobody", jobs(user=key), wasted, n) for key, wasted, n in by[_USERS]]),
    ]
    return Waste(hours, failed, failed >= MOST_FAILURES, lists)
