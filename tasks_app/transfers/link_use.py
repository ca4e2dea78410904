"""What pages and the API show of transfers: links with what waits and goes over them, and rules that are open or went wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, Sum

from jedisite.database.sql import hot_cursor, numbers
from jedisite.vocabulary.words import plural
from tasks_app.domain.job_refusal_codes import COPY_STORAGE_GONE
from tasks_app.domain.transfer_states import KIND_WORDS, TRANSFER_OPEN, TransferKind, TransferStatus
from tasks_app.models import TransferRequest, TransferRule
from tasks_app.transfers.copy_reasons import load_of
from tasks_app.transfers.link_settings import mover_settings
from tasks_app.transfers.rules.copy_waits import NEXT_TURN, NO_DISK, when_seen, why_busy
from tasks_app.transfers.rules.file_copy import FileCopy
from tasks_app.transfers.rules.under_way import UnderWay
from tasks_app.transfers.storages import local_storages


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A link between two endpoints. In files; `done` and `failed` are of the last hour; `why`: why files are queued.

    retried those of the queued ones that have failed, and will be tried again
    mbps    the mean of the last hour, or since the first copy that was made in it; None when none was
    limit   MB/s that all files on the link may have together; 0: any
    left    bytes of its files that wait or are being copied, and are not there yet
    moved   when bytes went over it last
    closed  nothing is copied over it until a storage or the link is opened, as `why` says
    """

    source: str
    destination: str
    queued: int
    active: int
    retried: int
    done: int
    failed: int
    mbps: float | None
    limit: float
    left: int
    moved: datetime | None
    oldest: datetime | None
    why: str
    closed: bool = False


_LINKS = """
SELECT q.source, q.destination, count(*) FILTER (WHERE q.status = 'queued'), count(*) FILTER (WHERE q.status = 'active'),
       count(*) FILTER (WHERE q.status = 'queued' AND q.error <> ''),
       count(DISTINCT (q.scope, q.lfn)) FILTER (WHERE q.status = 'done'), count(*) FILTER (WHERE q.status = 'failed'),
       -- Of a copy that was begun before that hour, the part of its bytes that is the hour's part of its time.
       (sum(CASE q.status WHEN 'done' THEN q.bytes WHEN 'active' THEN q.bytes_copied END
            * CASE WHEN q.started >= %(now)s - interval '1 hour' THEN 1
                   ELSE extract(epoch FROM coalesce(q.ended, %(now)s) - (%(now)s - interval '1 hour'))
                        / extract(epoch FROM coalesce(q.ended, %(now)s) - q.started) END) / 1e6)::float8
           / greatest(extract(epoch FROM %(now)s - greatest(min(q.started) FILTER (WHERE q.status IN ('done', 'active')),
                                                            %(now)s - interval '1 hour')), 1)::float8,
       coalesce(sum(q.bytes - q.bytes_copied) FILTER (WHERE q.status IN ('queued', 'active')), 0)::bigint,
       max(coalesce(q.ended, q.moved_at)) FILTER (WHERE q.status IN ('done', 'active')),
       min(q.created) FILTER (WHERE q.status = 'queued'),
       (array_agg(q.error ORDER BY q.moved_at DESC NULLS LAST, q.error) FILTER (WHERE q.status = 'queued' AND q.error <> ''))[1],
       max(q.moved_at) FILTER (WHERE q.status = 'queued' AND q.error <> '')
  FROM transfer_requests q WHERE q.status IN ('queued', 'active') OR q.ended >= %(now)s - interval '1 hour'
 GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC, 1, 2
"""


def links(now: datetime) -> list[LinkUse]:
    """All links over which files go, wait, or went in the last hour; those with the most that waits first."""
    with hot_cursor() as cursor:
        cursor.execute(_LINKS, {"now": now})
        rows = cursor.fetchall()
    settings, stores = mover_settings(), local_storages()
    reads: Counter[str] = Counter()
    for source, _, queued, active, retried, *_ in rows:
        reads[source] += active + queued - retried
    found = []
    for source, destination, queued, active, retried, done, failed, mbps, left, moved, oldest, error, tried in rows:
        load = load_of(source, destination, (active + queued - retried, left), reads[source], settings, stores)
        code, why = load.closed
        closed = bool(queued and why and code != COPY_STORAGE_GONE)
        if not closed:
            why = ""
            if not destination:
                why = NO_DISK
            elif queued > retried:
                why = load.closed[1] or why_busy(source, destination, load)[1] or NEXT_TURN
            if retried:
                again = f"{plural(retried, 'file')} will be tried again: {error}{when_seen(error, tried, now)}"
                why = f"{why}; {again}" if why else again
        counts = (queued, active, retried, done, failed)
        found.append(LinkUse(source, destination, *counts, mbps, load.mbps, left, moved, oldest, why, closed))
    return found


def copies(uses: Sequence[LinkUse], most: int) -> list[FileCopy]:
    """Files that are being copied now, those first that began first; at most `most`. One query."""
    limits = {(use.source, use.destination): use.limit for use in uses}
    active = TransferRequest.objects.filter(status=TransferStatus.ACTIVE).order_by("started", "id")
    rows = active.values_list(
        "lfn", "source", "destination", "rule_id", "bytes", "bytes_copied", "attempt", "started", "moved_at"
    )
    return [
        FileCopy(lfn, source, to, rule, size, copied, attempt, started, moved, limits.get((source, to), 0.0))
        for lfn, source, to, rule, size, copied, attempt, started, moved in rows[:most]
    ]


def rules_of_note(most: int, task_id: int | None = None) -> Sequence[TransferRule]:
    """Rules that are open, then those that failed, newest first; of one task if it is given."""
    rules = TransferRule.objects.defer("report")
    if task_id is not None:
        rules = rules.filter(task_id=task_id)
    is_open = list(rules.filter(status__in=[s.value for s in TRANSFER_OPEN]).order_by("-id")[:most])
    failed = rules.filter(status=TransferStatus.FAILED).order_by("-id")[: most - len(is_open)]
    return [*is_open, *failed]


class NotedRule(NamedTuple):
    """A rule with what it is for, and why it failed or waits."""

    rule: TransferRule
    what: str
    why: str


def noted(rules: Sequence[TransferRule], uses: Sequence[LinkUse], now: datetime) -> list[NotedRule]:
    """Rules with the last error of their queued files, else with why their link makes them wait."""
    ways = {(use.source, use.destination): use for use in uses}
    queued = TransferRequest.objects.filter(rule__in=[rule.pk for rule in rules], status=TransferStatus.QUEUED)
    why: dict[int, str] = {}
    rows = queued.values_list("rule_id", "error", "source", "destination", "moved_at")
    for rule_id, error, *link, tried in rows.order_by("rule_id", "error", "-id").distinct("rule_id", "error"):
        way = ways.get((link[0], link[1]))
        if error and not (way and way.closed):
            why[rule_id] = f"a file will be tried again: {error}{when_seen(error, tried, now)}"
        elif way:
            why[rule_id] = way.why
    for rule_id, other in _copied_for_others([rule.pk for rule in rules]).items():
        why[rule_id] = f"its files are being copied for rule {other}"
    return [NotedRule(rule, KIND_WORDS[TransferKind(rule.kind)], rule.error or why.get(rule.pk, "")) for rule in rules]


def _copied_for_others(rules: Sequence[int]) -> dict[int, int]:
    """Those of these rules all of whose queued files another rule copies to the same place now, each with one such rule."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT q.rule_id, min(o.rule_id) FROM transfer_requests q
                 LEFT JOIN transfer_requests o ON o.status = 'active' AND o.scope = q.scope AND o.lfn = q.lfn
                                              AND o.destination = q.destination AND o.rule_id <> q.rule_id
                WHERE q.rule_id = ANY(%s::bigint[]) AND q.status = 'queued' AND q.error = ''
                GROUP BY 1 HAVING bool_and(o.id IS NOT NULL)""",
            [numbers(rules)],
        )
        return dict(cursor.fetchall())


class TaskTransfers(NamedTuple):
    """What the rules of a task with one purpose and destination come to. Sizes in bytes."""

    what: str
    destination: str
    rules: int
    open: int
    files: int
    done: int
    failed: int
    size: int


def of_task(task_id: int) -> list[TaskTransfers]:
    """By purpose and destination; without rules that were cancelled."""
    with hot_cursor() as cursor:
        cursor.execute(
            """SELECT kind, destination, count(*), count(*) FILTER (WHERE status IN ('queued', 'active')), sum(files)::bigint,
                      sum(files_done)::bigint, sum(files_failed)::bigint, sum(bytes)::bigint
                 FROM transfer_rules WHERE jeditaskid = %s AND status <> 'cancelled' GROUP BY 1, 2 ORDER BY 1 DESC, 2""",
            [task_id],
        )
        return [TaskTransfers(KIND_WORDS[TransferKind(kind)], *more) for kind, *more in cursor.fetchall()]


def outputs_of(**whose: int) -> UnderWay:
    """Outputs that are still to be gathered, of the task with a `task_id` or the job with a `job_id`. One statement."""
    waiting = TransferRule.objects.filter(**whose, kind=TransferKind.GATHER, is_settled=False)
    rows = waiting.values("destination").annotate(left=Sum(F("bytes") - F("bytes_done"))).order_by("destination")
    found = list(rows.values_list("destination", "left"))
    return UnderWay(tuple(place for place, _ in found), sum(int(left) for _, left in found))
