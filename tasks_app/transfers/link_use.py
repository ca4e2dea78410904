"""What pages and the API show of transfers: links with what waits and goes over them, and rules that are open or went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from jedisite.database.sql import hot_cursor
from tasks_app.domain.transfer_states import TRANSFER_OPEN, TransferStatus
from tasks_app.models import TransferRequest, TransferRule
from tasks_app.transfers.link_settings import mover_settings
from tasks_app.transfers.storages import local_storages


@dataclass(frozen=True, slots=True)
class LinkUse:
    """A link between two endpoints. In files; `mbps`, `done` and `failed` are of the last hour; `why`: what they wait for."""

    source: str
    destination: str
    queued: int
    active: int
    waiting: int
    done: int
    failed: int
    mbps: float | None
    oldest: datetime | None
    why: str


_LINKS = """
SELECT q.source, q.destination, count(*) FILTER (WHERE q.status = 'queued'), count(*) FILTER (WHERE q.status = 'active'),
       count(*) FILTER (WHERE q.status = 'queued' AND q.next_try > %(now)s),
       count(*) FILTER (WHERE q.status = 'done'), count(*) FILTER (WHERE q.status = 'failed'),
       (sum(q.bytes) FILTER (WHERE q.status = 'done') / 1e6)::float8 / nullif(extract(epoch FROM (
           SELECT sum(upper(b) - lower(b)) FROM unnest(range_agg(tstzrange(q.started, q.ended))
                  FILTER (WHERE q.status = 'done' AND q.started < q.ended)) b)), 0)::float8,
       min(q.created) FILTER (WHERE q.status = 'queued'),
       coalesce(max(q.error) FILTER (WHERE q.status = 'queued' AND q.next_try > %(now)s), '')
  FROM transfer_requests q WHERE q.status IN ('queued', 'active') OR q.ended >= %(now)s - interval '1 hour'
 GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC, 1, 2
"""


def links(now: datetime) -> list[LinkUse]:
    """All links over which files go, wait, or went in the last hour; those with the most that waits first."""
    with hot_cursor() as cursor:
        cursor.execute(_LINKS, {"now": now})
        rows = cursor.fetchall()
    settings, stores = mover_settings(), local_storages()
    found = []
    for source, destination, queued, active, waiting, done, failed, mbps, oldest, error in rows:
        is_tape = source in stores and stores[source].is_tape
        pace = settings.pace(source, destination, is_tape)
        most = min(pace.at_once, settings.drives(source)) if is_tape else pace.at_once
        why = ""
        if waiting:
            why = f"tried again later: {error}"
        elif queued and active >= most:
            why = f"{'the tape has' if is_tape else 'the link takes'} {most} at a time"
        elif queued:
            why = "the next turn of the mover"
        found.append(LinkUse(source, destination, queued, active, waiting, done, failed, mbps, oldest, why))
    return found


def rules_of_note(most: int, task_id: int | None = None) -> Sequence[TransferRule]:
    """Rules that are open, then those that failed, newest first; of one task if it is given."""
    rules = TransferRule.objects.defer("report")
    if task_id is not None:
        rules = rules.filter(task_id=task_id)
    is_open = list(rules.filter(status__in=[s.value for s in TRANSFER_OPEN]).order_by("-id")[:most])
    failed = rules.filter(status=TransferStatus.FAILED).order_by("-id")[: most - len(is_open)]
    return [*is_open, *failed]


def waits_of(rules: Sequence[TransferRule]) -> dict[int, str]:
    """Why rules wait: what the last of their files that failed so far failed for."""
    rows = TransferRequest.objects.filter(rule__in=[rule.pk for rule in rules], status=TransferStatus.QUEUED)
    return dict(rows.exclude(error="").order_by("id").values_list("rule_id", "error"))
