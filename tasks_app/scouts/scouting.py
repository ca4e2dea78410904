"""Scouts at work: the verdict on them, and the later looks at a running task.

When and what follows is decided in `scouts` and `scout_verdict`; here it is read and written. The files that scouts get are
released in `inputs/released_files.py`; the verdict makes US 3 in the split rule.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
from django.db import transaction

from jedisite.agents.passes import kick
from jedisite.database.sql import hot_cursor
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TaskStatus
from tasks_app.inputs.file_rows import hold
from tasks_app.inputs.released_files import masters_of, release_all
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import ScoutReport, Task
from tasks_app.models.task import SCOUTS_SKIPPED
from tasks_app.params.splitrule import SplitRule
from tasks_app.scouts import scout_sample
from tasks_app.scouts.rules import scout_metrics, scouts
from tasks_app.scouts.rules.scout_verdict import Outcome, ScoutVerdict, ScoutView, judge


def due(now: datetime) -> str:
    """SQL on the row `t` of a scouting task: it is time to look whether its scouts can be judged."""
    return f"""(t.walltimeunit = '{SCOUTS_SKIPPED}' OR t.assessmenttime IS NULL
                OR t.assessmenttime <= '{(now - scouts.CHECK_EVERY).isoformat()}'::timestamptz
                OR NOT EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL
                                  AND d.type IN ('input', 'pseudo_input') AND d.status <> 'removed'
                                  AND d.nfilestobeused > d.nfilesfinished + d.nfilesfailed))"""  # noqa: S608 - a time of ours


@transaction.atomic
def look_at_scouts(task_id: int, fence: int, *, by: str, now: datetime) -> bool:
    """Judge the scouts of a claimed scouting task if it is time. Returns whether they were."""
    with hot_cursor() as cursor:
        hold(cursor, task_id, fence)
        task = Task.objects.get(pk=task_id)
        progress = _progress(cursor, task)
        why = scouts.judged_when(progress, now)
        if why is None:
            if progress.checked_at is None or now - progress.checked_at >= scouts.CHECK_EVERY:
                Task.objects.filter(pk=task_id).update(assessment_time=now)
            claims.release_task(task_id, fence)
            return False
        _conclude(cursor, task, fence, progress, why, by, now)
    return True


def _progress(cursor: psycopg.Cursor[Any], task: Task) -> scouts.ScoutProgress:
    masters = masters_of(task.id)
    released = sum(m.files_to_be_used for m in masters)
    known = sum(m.files for m in masters)
    cursor.execute(
        # The cursor stands still, at 0, where files are used in an order of their own.
        """SELECT count(DISTINCT c.pandaid), count(DISTINCT c.pandaid) FILTER (WHERE c.status IN ('finished', 'partial'))
             FROM jedi_datasets d JOIN jedi_dataset_contents c ON c.jeditaskid = d.jeditaskid AND c.datasetid = d.datasetid
            WHERE d.jeditaskid = %s AND d.datasetid = ANY(%s) AND c.pandaid IS NOT NULL
              AND (c.fileid <= d.pick_cursor OR d.pick_cursor = 0)""",
        [task.id, [m.id for m in masters]],
    )
    jobs, finished = cursor.fetchone() or (0, 0)
    return scouts.ScoutProgress(
        released,
        sum(m.files_finished for m in masters),
        sum(m.files_failed for m in masters),
        jobs,
        finished,
        task.skips_scouts,
        task.assessment_time,
        awaits_more=not released or (not finished and released >= known and any(m.state == "mutable" for m in masters)),
    )


def _conclude(
    cursor: psycopg.Cursor[Any],
    task: Task,
    fence: int,
    progress: scouts.ScoutProgress,
    why: scouts.Due,
    by: str,
    now: datetime,
) -> None:
    numbers, verdict = _judge(cursor, task, progress, build_failures=_build_failures(cursor, task.id))
    done = f"{progress.finished} of {plural(progress.files, 'input file')} of scouts succeeded"
    if progress.exhausted:
        done += f", {progress.exhausted} failed permanently"
    if verdict.outcome is Outcome.FAILED:
        reason = verdict.reason.detail if verdict.reason else done
        _report(task, numbers, verdict, reason, scouting=True)
        task_moves.move_task(
            task.id, TaskStatus.TOBROKEN, by=by, reason=reason, fence=fence, error_dialog=reason, assessment_time=now
        )
        return
    more = release_all(cursor, task.id)
    columns = {**numbers.columns, "split_rule": str(verdict.rule), "assessment_time": now}
    messages = "".join(f"; {message.detail}" for message in verdict.messages)
    if verdict.outcome is Outcome.EXHAUSTED:
        reason = (verdict.reason.detail if verdict.reason else done) + messages
        _report(task, numbers, verdict, reason, scouting=True)
        task_moves.move_task(
            task.id,
            TaskStatus.EXHAUSTED,
            by=by,
            reason=reason,
            fence=fence,
            error_dialog=reason,
            remember=True,
            **columns,
        )
        return
    reason = (
        f"{done} ({why.value}); {plural(len(numbers.samples), 'job was', 'jobs were')} measured; "
        f"{plural(more, 'more file is', 'more files are')} released{messages}"
    )
    _report(task, numbers, verdict, reason, scouting=True)
    task_moves.move_task(task.id, TaskStatus.SCOUTED, by=by, reason=reason, fence=fence, **columns)
    task_moves.move_task(
        task.id, TaskStatus.RUNNING, by=by, reason="the scouts are judged", error_dialog=None, old_status=None
    )
    kick("job_generator", "post_processor")


def _judge(
    cursor: psycopg.Cursor[Any], task: Task, progress: scouts.ScoutProgress, *, build_failures: int = 0
) -> tuple[scout_sample.Numbers, ScoutVerdict]:
    rule = SplitRule.parse(task.split_rule)
    samples = scout_sample.samples_of(cursor, task.id)
    numbers = scout_sample.measure_task(task, samples, rule)
    if rule.flag("MO"):
        numbers = replace(numbers, columns={**numbers.columns, **scout_sample.merge_columns(cursor, task)})
    finished = max(progress.jobs_finished, len(samples))
    size = scout_sample.size_of(cursor, task.id, finished)
    view = ScoutView(
        numbers.rule,
        finished,
        progress.finished,
        progress.exhausted,
        build_failures,
        samples,
        numbers.measured,
        numbers.presets,
        scout_metrics.expected_jobs(size, rule, samples),
    )
    return numbers, judge(view, scout_sample.limits_for(task))


def _build_failures(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    """Failed jobs of the task that were to make its library."""
    cursor.execute(
        """SELECT count(*) FROM jobs j WHERE j.jeditaskid = %s AND j.jobstatus = 'failed'
              AND EXISTS (SELECT 1 FROM job_files f WHERE f.pandaid = j.pandaid AND f.type = 'lib'
                             AND f.fileid IS NOT NULL AND f.destinationse IS NOT NULL)""",
        [task_id],
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def done_jobs(cursor: psycopg.Cursor[Any], task_id: int) -> int:
    """Finished jobs of a task; those that moved to the archive have been counted in earlier reports."""
    cursor.execute("SELECT count(*) FROM jobs WHERE jeditaskid = %s AND jobstatus = 'finished'", [task_id])
    row = cursor.fetchone()
    return int(row[0]) if row else 0


@transaction.atomic
def look_again(task_id: int, fence: int, *, by: str, now: datetime) -> bool:
    """Measure a claimed task anew if it is time, and exhaust it if its jobs are not what was declared.

    Returns whether it was measured.
    """
    with hot_cursor() as cursor:
        hold(cursor, task_id, fence)
        task = Task.objects.get(pk=task_id)
        view = scouts.RefreshView(
            task.status, task.walltime_unit is not None, done_jobs(cursor, task_id), task.assessment_time
        )
        refresh = scouts.refresh_when(view, now)
        if refresh is scouts.Refresh.NO:
            claims.release_task(task_id, fence)
            return False
        progress = replace(_progress(cursor, task), jobs_finished=view.done_jobs)
        numbers, verdict = _judge(cursor, task, progress)
        columns = {**numbers.columns, "split_rule": str(numbers.rule), "assessment_time": now}
        if refresh is scouts.Refresh.VERDICT and verdict.outcome is Outcome.EXHAUSTED and verdict.reason:
            _report(task, numbers, verdict, verdict.reason.detail, finished=view.done_jobs)
            task_moves.move_task(
                task_id,
                TaskStatus.EXHAUSTED,
                by=by,
                reason=verdict.reason.detail,
                fence=fence,
                remember=True,
                error_dialog=verdict.reason.detail,
                **columns,
            )
            return True
        detail = f"of {plural(view.done_jobs, 'finished job')}"
        measured = len(numbers.samples)
        detail = f"measured from {measured} {detail}" if measured else f"nothing was measured: none {detail} read input"
        _report(task, numbers, None, detail, finished=view.done_jobs)
        Task.objects.filter(pk=task_id).update(**columns)
        claims.release_task(task_id, fence)
    return True


def _report(
    task: Task,
    numbers: scout_sample.Numbers,
    verdict: ScoutVerdict | None,
    detail: str,
    *,
    scouting: bool = False,
    finished: int | None = None,
) -> None:
    names = [name for name in numbers.columns if name != "walltime_unit"]
    measured = {name: _plain(numbers.columns[name]) for name in names}
    if numbers.measured.cpu_efficiency_percent is not None:
        measured["cpu_efficiency_percent"] = round(numbers.measured.cpu_efficiency_percent, 1)
    if numbers.measured.ram_used_mb is not None:
        measured["ram_used"] = numbers.measured.ram_used_mb
    ScoutReport.objects.create(
        task_id=task.id,
        scouts=scouting,
        detail=detail,
        sample=len(numbers.samples),
        outcome=verdict.outcome.name.lower() if verdict else "measured",
        code=verdict.reason.code if verdict and verdict.reason else "",
        finished_jobs=len(numbers.samples) if finished is None else finished,
        presets={name: _plain(getattr(task, name)) for name in names},
        measured=measured,
    )


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str | None) else float(value)
