"""Verdicts in the database: kept by brokers' callers, folded into counts of days, hours and minutes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from brokerage_app.models import GridSnapshot, VerdictCount, VerdictHour, VerdictMinute, VerdictRecord
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.stored import as_json, pack
from brokerage_app.vocabulary.verdict import Verdict
from jedisite.database.sql import hot_cursor

SNAPSHOT_EVERY = timedelta(seconds=60)
SNAPSHOTS_KEPT = timedelta(days=2)
VERDICTS_KEPT = timedelta(days=14)
COUNTS_KEPT = timedelta(days=366)
HOURS_KEPT = timedelta(days=2)
MINUTES_KEPT = timedelta(days=8)
KEPT_IN_FULL = 3
"""The latest verdicts of a task and kind that keep every site with its numbers."""


class Snapshots:
    """The snapshot of one pass, stored when the first verdict of the pass refers to it.

    The database gets one a minute at most: verdicts of the passes between refer to the last one.
    """

    def __init__(self, grid: Grid) -> None:
        self.grid, self._id = grid, 0

    @property
    def id(self) -> int:
        if not self._id:
            recent = (
                GridSnapshot.objects.filter(at__gt=Now() - SNAPSHOT_EVERY).order_by("-id").values_list("id", flat=True)
            )
            self._id = recent.first() or self._store()
        return self._id

    def _store(self) -> int:
        return GridSnapshot.objects.create(sites=len(self.grid.queues()), body=pack(self.grid)).id


@dataclass(frozen=True, slots=True)
class Decided:
    """One decision with all that is kept of it.

    kind     `job` for queues, `task` for nuclei, `merge` for merge jobs
    broker   name of the broker
    facts    what the broker knew besides needs and grid, as JSON
    sentence what people read, when it is not the verdict's own
    at       when it was made, which is not later than the jobs that came of it; None is now
    """

    task_id: int
    verdict: Verdict
    needs: TaskNeeds | None = None
    kind: str = "job"
    broker: str = "generic"
    facts: Any = None
    snapshots: Snapshots | None = field(default=None, compare=False)
    sentence: str = ""
    at: datetime | None = None


def keep(decided: Decided) -> int:
    """Keep a verdict: a new row if it chose other sites or skipped some for other reasons, else the last row anew.

    Returns the row's id. The latest three rows have every site with its numbers; of the one before only the sites by
    reason are left.
    """
    verdict, values, at = decided.verdict, _values(decided), decided.at or timezone.now()
    with transaction.atomic():
        of_kind = VerdictRecord.objects.filter(task_id=decided.task_id, kind=decided.kind).order_by("-id")
        latest = of_kind.values_list("id", "code", "reasons", "chosen").first()
        if latest is not None and _shape(*latest[1:]) == _shape(verdict.code, values["reasons"], values["chosen"]):
            anew = {name: _jsonb(value) if name in _JSON else value for name, value in values.items()}
            with hot_cursor() as cursor:
                cursor.execute(_AGAIN, {**anew, "at": at, "id": latest[0]})
            return int(latest[0])
        if latest is not None:
            older = of_kind.values("id")[KEPT_IN_FULL - 1 : KEPT_IN_FULL]
            VerdictRecord.objects.filter(pk__in=older).update(skipped=[], facts=None)
        return VerdictRecord.objects.create(**values, first_at=at, at=at).id


_JSON = ("chosen", "skipped", "reasons", "stopped", "needs", "facts")
_AGAIN = """
UPDATE verdicts SET at = %(at)s, repeats = repeats + 1, chosen = %(chosen)s, skipped = %(skipped)s, stopped = %(stopped)s,
       needs = %(needs)s, facts = %(facts)s, sentence = %(sentence)s, snapshot_id = %(snapshot_id)s, broker = %(broker)s
 WHERE id = %(id)s
"""


def _jsonb(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=str)


def _shape(code: str, reasons: dict[str, list[str]], chosen: list[list[Any]]) -> tuple[Any, ...]:
    return code, reasons, sorted(choice[0] for choice in chosen)


def _values(decided: Decided) -> dict[str, Any]:
    verdict, needs = decided.verdict, decided.needs
    stopped = verdict.stopped
    return {
        "task_id": decided.task_id,
        "kind": decided.kind,
        "broker": decided.broker,
        "share": needs.share if needs is not None else "",
        "code": verdict.code,
        "chosen": verdict.kept_choices(),
        "skipped": verdict.kept_skips(),
        "reasons": verdict.compact(),
        "stopped": [stopped.code, stopped.detail] if stopped is not None else None,
        "sentence": decided.sentence or verdict.sentence(),
        "needs": as_json(needs) if needs is not None else None,
        "facts": decided.facts,
        "snapshot_id": decided.snapshots.id if decided.snapshots is not None else None,
    }


_FOLD = """
WITH taken AS (
    SELECT id FROM verdicts WHERE repeats > counted ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED),
counted AS (
    UPDATE verdicts v SET counted = v.repeats FROM taken t, verdicts old
     WHERE v.id = t.id AND old.id = v.id
    RETURNING v.kind, v.share, v.at, v.code, v.chosen, v.reasons, v.stopped, v.repeats - old.counted AS more),
said AS (
    SELECT kind, share, at, more, c.site, '' AS code
      FROM counted CROSS JOIN LATERAL (SELECT DISTINCT coalesce(e ->> 3, e ->> 0) AS site FROM jsonb_array_elements(chosen) e) c
    UNION ALL
    SELECT kind, share, at, more, s, r.key FROM counted CROSS JOIN jsonb_each(reasons) r
     CROSS JOIN jsonb_array_elements_text(r.value) s
    UNION ALL
    SELECT kind, share, at, more, '', stopped ->> 0 FROM counted WHERE jsonb_typeof(stopped) = 'array'),
folded AS (
    INSERT INTO verdict_counts AS k (day, kind, share, site, code, decisions)
    SELECT (at AT TIME ZONE 'UTC')::date, kind, share, site, code, sum(more) FROM said
     GROUP BY 1, 2, 3, 4, 5 ORDER BY 4, 1, 2, 3, 5
    ON CONFLICT (site, day, kind, share, code) DO UPDATE SET decisions = k.decisions + excluded.decisions),
by_hour AS (
    INSERT INTO verdict_hours AS k (hour, kind, share, site, code, decisions)
    SELECT date_trunc('hour', at, 'UTC'), kind, share, site, code, sum(more) FROM said
     GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 4, 2, 3, 5
    ON CONFLICT (hour, site, kind, share, code) DO UPDATE SET decisions = k.decisions + excluded.decisions),
by_minute AS (
    INSERT INTO verdict_minutes AS k (minute, kind, share, code, decisions)
    SELECT date_trunc('minute', at, 'UTC'), kind, share, code, sum(more) FROM counted
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
    ON CONFLICT (minute, kind, share, code) DO UPDATE SET decisions = k.decisions + excluded.decisions)
SELECT count(*) FROM taken
"""


def fold(limit: int = 1000) -> int:
    """Add decisions that are not counted yet to the counts of their day, hour and minute. Returns the number of verdicts."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FOLD, {"limit": limit})
        return int(cursor.fetchone()[0])


def forget_old() -> int:
    """Delete what has been kept long enough: counts of a year ago, verdicts that are neither recent nor their task's last.

    Returns the number of rows.
    """
    old = VerdictRecord.objects.filter(at__lt=Now() - VERDICTS_KEPT)
    with connection.cursor() as cursor:
        cursor.execute(
            """DELETE FROM verdicts v WHERE v.at < now() - make_interval(secs => %s) AND v.repeats = v.counted
                  AND EXISTS (SELECT 1 FROM verdicts n WHERE n.jeditaskid = v.jeditaskid AND n.kind = v.kind AND n.id > v.id)""",
            [VERDICTS_KEPT.total_seconds()],
        )
        gone = cursor.rowcount
    old.filter(needs__isnull=False).update(needs=None, facts=None)
    counts, _ = VerdictCount.objects.filter(day__lt=Now() - COUNTS_KEPT).delete()
    hours, _ = VerdictHour.objects.filter(hour__lt=Now() - HOURS_KEPT - timedelta(hours=1)).delete()
    minutes, _ = VerdictMinute.objects.filter(minute__lt=Now() - MINUTES_KEPT).delete()
    snapshots, _ = GridSnapshot.objects.filter(at__lt=Now() - SNAPSHOTS_KEPT).delete()
    return int(gone) + counts + hours + minutes + snapshots
