"""What the page of a job tells beside the job itself: its attempts, how common its error is, and why it was sent there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from brokerage_app.models import VerdictRecord
from tasks_app.domain.words import COUNT_CAP, plural
from tasks_app.explaining.rules.job_gates import ChosenFact
from tasks_app.explaining.why_job import choice_of, decision_on
from tasks_app.models import Job, JobArchive, JobRetryHistory
from tasks_app.models.job import JobColumns

LINKS: Final = 200
DEEPEST: Final = 6
RECENTLY: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Beside:
    """Command line, the payload's report, and what the retry rules made of the job: (code, detail, applied)."""

    params: str | None
    metadata: Any
    notes: Sequence[tuple[str, str, bool]]


def beside(job_id: int) -> Beside:
    """One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT (SELECT jobparameters FROM job_params WHERE pandaid = %(job)s LIMIT 1),
                      (SELECT jsonb_build_array(metadata) FROM job_metadata WHERE pandaid = %(job)s LIMIT 1)::text,
                      (SELECT array_agg(code ORDER BY id) FROM job_retry_notes WHERE pandaid = %(job)s),
                      (SELECT array_agg(detail ORDER BY id) FROM job_retry_notes WHERE pandaid = %(job)s),
                      (SELECT array_agg(applied ORDER BY id) FROM job_retry_notes WHERE pandaid = %(job)s)""",
            {"job": job_id},
        )
        params, metadata, codes, details, applied = cursor.fetchone()
    notes = list(zip(codes or (), details or (), applied or (), strict=True))[:20]
    return Beside(params, json.loads(metadata)[0] if metadata else None, notes)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A job of the chain. `depth`: how many jobs came before it on its way; values are None where the job is gone."""

    job_id: int
    depth: int
    status: str | None
    site: str | None
    node: str | None
    attempt: int | None
    ended: datetime | None
    relation: str


def attempts(job_id: int) -> list[Attempt]:
    """The jobs that worked on the same files as a tree, the first one on top; empty when it stands alone. Two statements."""
    near = list(
        JobRetryHistory.objects.exclude(relation_type="merge")
        .filter(Q(old_job_id=job_id) | Q(new_job_id=job_id))
        .order_by("id")[:LINKS]
    )
    if not near:
        return []
    tree: dict[int, dict[int, str]] = defaultdict(dict)
    ids = {job_id}
    for link in near:
        ids |= {link.old_job_id, link.new_job_id}
        tree[link.old_job_id][link.new_job_id] = link.relation_type or ""
    # Of a long chain only the neighbours are linked here; its first job is known, and stands on top.
    below = {new for news in tree.values() for new in news}
    for origin in sorted({link.origin_job_id for link in near if link.origin_job_id} - ids):
        for top in sorted(ids - below):
            tree[origin][top] = "…"
        ids.add(origin)
    below = {new for news in tree.values() for new in news}
    known = _jobs(ids)
    found: list[Attempt] = []
    for top in sorted(ids - below):
        _walk(top, 0, "", tree, known, found)
    return found


def _walk(
    job: int,
    depth: int,
    relation: str,
    tree: Mapping[int, Mapping[int, str]],
    known: Mapping[int, Mapping[str, Any]],
    found: list[Attempt],
) -> None:
    if any(seen.job_id == job for seen in found):
        return
    row = known.get(job, {})
    found.append(
        Attempt(
            job,
            min(depth, DEEPEST),
            row.get("status"),
            row.get("site"),
            row.get("worker_node"),
            row.get("attempt"),
            row.get("end_time"),
            relation,
        )
    )
    for new, how in sorted(tree.get(job, {}).items()):
        _walk(new, depth + 1, how, tree, known, found)


def _jobs(ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Jobs by id, living or archived. One statement."""
    names = ("id", "status", "site", "worker_node", "attempt", "end_time")
    living = Job.objects.filter(pk__in=sorted(ids)).order_by().values(*names)
    archived = JobArchive.objects.filter(pk__in=sorted(ids)).order_by().values(*names)
    return {row["id"]: row for row in living.union(archived, all=True)}


@dataclass(frozen=True, slots=True)
class Commonness:
    """Failures with the fingerprint of a job's error within 24 hours: in all, at the same queue, on the same worker node,
    and of how many tasks and queues. Counts end at the cap."""

    fingerprint_id: int
    text: str
    jobs: int
    here: int
    on_node: int
    tasks: int
    sites: int
    first_seen: datetime
    ticket: str
    advice: str
    known_until: datetime | None

    @property
    def is_capped(self) -> bool:
        return self.jobs >= COUNT_CAP

    @property
    def sentence(self) -> str:
        """Where the failures are, in words."""
        if self.jobs <= 1:
            return "No other job failed like this within 24 hours."
        if self.on_node == self.jobs:
            return "All of them were on this worker node."
        if self.on_node >= 0.8 * self.jobs:
            return "Nearly all of them were on this worker node."
        if self.sites <= 1:
            return "All of them were at this queue." if self.here else "All of them were at another queue."
        where = plural(self.sites, "queue")
        return (
            f"They were at {where}, of {plural(self.tasks, 'task')}."
            if self.tasks > 1
            else f"They were at {where}, all of this task."
        )


def commonness(job: JobColumns, now: datetime) -> Commonness | None:
    """How often the error of a failed job came lately; None when it is not booked (yet). One statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT p.id, p.text, r.jobs, r.here, r.on_node, r.tasks, r.sites, p.first_seen, p.ticket, p.advice, p.known_until
                 FROM job_failures f JOIN error_fingerprints p ON p.id = f.fingerprint_id
                CROSS JOIN LATERAL (
                      SELECT count(*) AS jobs, count(*) FILTER (WHERE n.computingsite = f.computingsite) AS here,
                             count(*) FILTER (WHERE n.node = f.node AND n.node <> '') AS on_node,
                             count(DISTINCT n.jeditaskid) AS tasks, count(DISTINCT n.computingsite) AS sites
                        FROM (SELECT computingsite, node, jeditaskid FROM job_failures
                               WHERE fingerprint_id = f.fingerprint_id AND ended > %s ORDER BY ended DESC LIMIT %s) n) r
                WHERE f.pandaid = %s""",
            [now - RECENTLY, COUNT_CAP, job.id],
        )
        row = cursor.fetchone()
    return None if row is None else Commonness(*row)


@dataclass(frozen=True, slots=True)
class SentHere:
    """The decision of the broker that sent a job to its queue, and the queue's place among the chosen."""

    verdict: VerdictRecord
    choice: ChosenFact


def sent_here(job: JobColumns) -> SentHere | None:
    """The decision that held when the job was made; None when none is kept that chose its queue. One statement."""
    verdict = decision_on(job)
    choice = choice_of(job, verdict)
    return SentHere(verdict, choice) if verdict is not None and choice is not None else None
