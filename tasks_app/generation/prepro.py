"""The job of a preprocessing step: it finds out what the task reads, before anything else.

`inputs/preprocessed.py` says what the step is, and reads what it found; how it ends is in `outcomes/preprocessing_ends.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.verdict import Verdict
from jedisite.agents.passes import owner
from jedisite.database.sql import hot_cursor
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.job_rows import SiteJobs
from tasks_app.generation.picker import pick
from tasks_app.generation.rules.sources import Source
from tasks_app.generation.store import Bunch, store
from tasks_app.generation.turn_facts import TurnFacts, read_turn
from tasks_app.inputs.file_rows import hold
from tasks_app.inputs.preprocessed import INPUT, LOG
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.models import Dataset, Task
from tasks_app.params import buildstep
from tasks_app.params.placeholders import BadTemplate, UnresolvedPlaceholder
from tasks_app.refining.policy import Transforms
from tasks_app.splitting.chunk import Group
from tasks_app.submission import sandboxes

ME = "job_generator"
CORES = 1

_HAS_WORK = f"""
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = '{INPUT}' AND d.status = 'ready'
           AND d.nfilestobeused > d.nfilesused)
"""  # noqa: S608 - a constant of ours

WAITING = frozenset({TaskStatus.TOPREPROCESS, TaskStatus.PREPROCESSING, TaskStatus.READY})
"""States of tasks whose preprocessing step may wait for a job."""


def claim(limit: int, off: Collection[str] = ()) -> list[tuple[int, int]]:
    """Claim tasks whose preprocessing step waits for a job, the first time or again. A retried task is ready then.

    `off` are VOs for which no jobs are made.
    """
    condition = f"{_HAS_WORK} AND coalesce(t.vo, '') <> ALL(%(off)s)"
    return claims.claim_tasks(owner(), WAITING, limit, condition=condition, values={"off": list(off)}, agent=ME)


def generate(claimed: Iterable[tuple[int, int]], view: GridView, now: datetime, read_at: datetime) -> int:
    """Make a job for each of these tasks. Returns how many. `read_at`: before the grid was read, by the database's clock."""
    return claims.for_each(claimed, lambda task_id, fence: _make(task_id, fence, view, now, read_at), by=ME)


def _make(task_id: int, fence: int, view: GridView, now: datetime, read_at: datetime) -> bool:
    task = Task.objects.select_related("job_params_template").get(pk=task_id)
    try:
        turn = read_turn(task, fence, now)
    except BadTemplate as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=f"the preprocessing job cannot be made: {exc}")
        return False
    no_sandbox = sandboxes.lacking(task_id, task.user, turn.raw, turn.template.text)
    if no_sandbox:
        task_moves.set_aside(task_id, fence, by=ME, reason=no_sandbox)
        return False
    needs = _needs(turn)
    verdict = view.decide(needs, task, now).verdict
    if not verdict.chosen:
        site_waits.set_aside(task_id, fence, by=ME, reason=_unplaced(verdict), read_at=read_at)
        return False
    site = view.site(verdict.chosen[0].site)
    try:
        with transaction.atomic():
            job_made = _store(turn, needs, site, now)
            if job_made:
                view.made(site.name, 1, task, cores=CORES)
            if job_made and task.status != TaskStatus.PREPROCESSING:
                task_moves.move_task(
                    task_id,
                    TaskStatus.PREPROCESSING,
                    by=ME,
                    fence=fence,
                    error_dialog=None,
                    reason=f"the preprocessing job goes to {site.name}",
                    start_time=task.start_time or now,
                )
                return True
    except UnresolvedPlaceholder as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=f"the preprocessing job cannot be made: {exc}")
        return True
    claims.release_task(task_id, fence)
    return job_made


def _unplaced(verdict: Verdict) -> str:
    return f"the preprocessing job has no site: {verdict.sentence()}"


def _needs(turn: TurnFacts) -> TaskNeeds:
    return replace(turn.needs, cores=CORES, walltime_s=0)


def _store(turn: TurnFacts, needs: TaskNeeds, site: SiteView, now: datetime) -> bool:
    """In a transaction: one job for the record, if it is still there to be used."""
    task = turn.task
    spec = turn.raw.get("preproSpec") or {}
    facts = replace(
        turn.facts,
        label=str(spec.get("prodSourceLabel") or buildstep.LABEL),
        transformation=str(spec.get("transPath") or Transforms().preprocess),
        priority=max(buildstep.PRIORITY, turn.facts.priority + 1),
    )
    # For the job its log is a log like any other.
    streams = [replace(stream, type="log") for stream in turn.streams() if stream.type == LOG]
    with hot_cursor() as cursor:
        hold(cursor, task.id, turn.fence)
        dataset = Dataset.objects.get(task_id=task.id, type=INPUT)
        row = turn.row(dataset)
        picked = pick(cursor, task.id, row, 1)
        if not picked.files:
            return False
        group = Group(picked.files, (), 0, 0, 0, 0.0)
        inputs = [(dataset.name, dataset.stream_name or "")]
        limits = turn.limits(site)
        jobs = SiteJobs(facts, needs, site, limits, [group], inputs, streams, turn.template, now)
        store(cursor, Bunch([jobs], [Source(row, picked)], sandbox=turn.sandbox))
    return True
