"""The strip of numbers on the overview: what runs, waits and ends now, with the last day as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.db import connection
from django.urls import reverse

from brokerage_app.grid import samples
from brokerage_app.grid.samples import Series
from brokerage_app.models import Sample
from tasks_app.counts.statistics import JOB_COUNTS
from tasks_app.domain import words
from tasks_app.domain.states import JOB_QUEUED
from tasks_app.drawing import sparklines
from tasks_app.drawing.sparklines import Sparkline

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(hours=24)
SPARK_STEP: Final = timedelta(minutes=15)


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
            _spark(found.per_hour("finished"), "Finished jobs per hour"),
        ),
        Kpi(
            "failure rate in the last hour",
            "–" if failed is None else f"{failed:.1f}",
            "%",
            address(errors, window="1h"),
            "wait" if failed is None else "bad" if failed >= 20 else "warn" if failed >= 10 else "ok",
            _spark(found.failure_percent(), "Failed jobs in per cent of ended jobs"),
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
