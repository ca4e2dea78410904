"""The preprocessing step of a task: one job that finds out what the task reads, before anything else.

The refiner lays out the step alone: a dataset of type `pp_input` with one record, and one of type `pp_log`. The job is
tried as often as the record allows. What it reports under `results` fills the `%%NAME%%` of the task's parameters when
the task is refined for the second time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from brokerage_app.brokers import deciding, generic
from brokerage_app.brokers.funnel import GENERIC, order_of
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Verdict
from jedisite.agents.passes import owner
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import DatasetStatus, FileStatus, TaskStatus
from tasks_app.generation.builder import Builder
from tasks_app.generation.picker import pick
from tasks_app.generation.store import Part, Source, store
from tasks_app.generation.turn_facts import TaskWork
from tasks_app.inputs.file_rows import hold
from tasks_app.inputs.preprocessed import INPUT, LOG
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.models import Dataset, File, OutputTemplate, Task
from tasks_app.params import buildstep
from tasks_app.params.placeholders import BadTemplate, UnresolvedPlaceholder
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining.policy import Transforms
from tasks_app.splitting.chunk import Group
from tasks_app.submission import sandboxes

ME = "job_generator"
TYPES = (INPUT, LOG)
RECORD = "preprocessing"
ATTEMPTS = 3
CORES = 1
FAILED = "its preprocessing step failed"

_HAS_WORK = f"""
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = '{INPUT}' AND d.status = 'ready'
           AND d.nfilestobeused > d.nfilesused)
"""  # noqa: S608 - a constant of ours
_ENDED = f"""
NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.type = '{INPUT}'
               AND d.nfilestobeused > d.nfilesfinished + d.nfilesfailed)
"""  # noqa: S608


def seed(task_id: int) -> bool:
    """Store the record of a preprocessing step that the refiner has just laid out. Returns whether there is one."""
    dataset = Dataset.objects.filter(task_id=task_id, type=INPUT).first()
    if dataset is None or dataset.files:
        return False
    # As a pseudo input it is booked and tried again like any other.
    File.objects.create(
        task_id=task_id,
        dataset_id=dataset.id,
        lfn=RECORD,
        type="pseudo_input",
        status=FileStatus.READY,
        attempt=0,
        max_attempt=ATTEMPTS,
        keep_track=1,
        size=0,
    )
    Dataset.objects.filter(pk=dataset.id).update(
        files=1, files_to_be_used=1, status=DatasetStatus.READY, state="closed"
    )
    return True


def put_aside(task_id: int) -> None:
    """The step is over: the task's own jobs write no log of it."""
    OutputTemplate.objects.filter(task_id=task_id, dataset__type=LOG).delete()


def claim(limit: int, off: Collection[str] = ()) -> list[tuple[int, int]]:
    """Claim tasks whose preprocessing step waits for a job, the first time or again. A retried task is ready then.

    `off` are VOs for which no jobs are made.
    """
    waiting = (TaskStatus.TOPREPROCESS, TaskStatus.PREPROCESSING, TaskStatus.READY)
    condition = f"{_HAS_WORK} AND coalesce(t.vo, '') <> ALL(%(off)s)"
    return claims.claim_tasks(owner(), waiting, limit, condition=condition, values={"off": list(off)}, agent=ME)


def generate(claimed: Iterable[tuple[int, int]], grid: Grid, now: datetime, read_at: datetime) -> int:
    """Make a job for each of these tasks. Returns how many. `read_at`: before the grid was read, by the database's clock."""
    return claims.for_each(claimed, lambda task_id, fence: _make(task_id, fence, grid, now, read_at), by=ME)


def _make(task_id: int, fence: int, grid: Grid, now: datetime, read_at: datetime) -> bool:
    task = Task.objects.select_related("job_params_template").get(pk=task_id)
    try:
        work = TaskWork(task, fence, now)
    except BadTemplate as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=f"the preprocessing job cannot be made: {exc}")
        return False
    no_sandbox = sandboxes.lacking(task_id, task.user, work.raw, work.template.text)
    if no_sandbox:
        task_moves.set_aside(
            task_id, fence, by=ME, reason=no_sandbox, wait=timedelta(seconds=settings.JEDI_PENDING_RETRY_S)
        )
        return False
    needs = _needs(work)
    verdict = generic.broker(needs, grid, generic.rules(settings.JEDI_QUEUE_FLOOR))
    verdict = deciding.told(verdict, needs, grid, order_of(GENERIC))
    if not verdict.chosen:
        site_waits.set_aside(task_id, fence, by=ME, reason=_unplaced(verdict), read_at=read_at)
        return False
    site = grid.sites[verdict.chosen[0].site]
    try:
        with transaction.atomic():
            job_made = _store(work, needs, site, now)
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


def _needs(work: TaskWork) -> TaskNeeds:
    return replace(work.needs, cores=CORES, walltime_s=0)


def _store(work: TaskWork, needs: TaskNeeds, site: SiteView, now: datetime) -> bool:
    """In a transaction: one job for the record, if it is still there to be used."""
    task = work.task
    spec = work.raw.get("preproSpec") or {}
    facts = replace(
        work.facts,
        label=str(spec.get("prodSourceLabel") or buildstep.LABEL),
        transformation=str(spec.get("transPath") or Transforms().preprocess),
        priority=max(buildstep.PRIORITY, work.facts.priority + 1),
    )
    # For the job its log is a log like any other.
    streams = [replace(stream, type="log") for stream in work.streams() if stream.type == LOG]
    with hot_cursor() as cursor:
        hold(cursor, task.id, work.fence)
        dataset = Dataset.objects.get(task_id=task.id, type=INPUT)
        row = work.row(dataset)
        picked = pick(cursor, task.id, row, 1)
        if not picked.files:
            return False
        build = Builder(
            facts,
            needs,
            site,
            work.limits(site),
            streams,
            work.template,
            [(dataset.name, dataset.stream_name or "")],
            now,
        )
        group = Group(picked.files, (), 0, 0, 0, 0.0)
        store(cursor, [Part(build, [group])], [Source(row, picked)], None)
    return True


def conclude(limit: int, *, by: str) -> int:
    """Tasks whose preprocessing step has ended go back to the refiner, or are finished as failed. Returns how many."""

    def work(task_id: int, fence: int) -> None:
        task = Task.objects.get(pk=task_id)
        dataset = Dataset.objects.get(task_id=task_id, type=INPUT)
        if dataset.files_finished:
            Dataset.objects.filter(task_id=task_id, type=INPUT).update(status=DatasetStatus.DONE)
            rule = SplitRule.parse(task.split_rule).having("UP", 2)
            task_moves.move_task(
                task_id,
                TaskStatus.REGISTERED,
                by=by,
                reason="preprocessing is done",
                fence=fence,
                error_dialog=None,
                split_rule=str(rule),
            )
            return
        failed = File.objects.filter(task_id=task_id, dataset_id=dataset.id).values_list("attempt", flat=True).first()
        reason = f"{FAILED} {plural(failed or 0, 'time')}"
        task_moves.move_task(task_id, TaskStatus.PREPARED, by=by, reason=reason, fence=fence, error_dialog=reason)

    claimed = claims.claim_tasks(owner(), [TaskStatus.PREPROCESSING], limit, condition=_ENDED, agent=by)
    return claims.for_each(claimed, work, by=by)
