"""A task's turn in the job generator: jobs are made of its input, what the broker decided is kept, and the task is freed."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone

from brokerage_app.verdicts import records
from brokerage_app.vocabulary.stored import as_json
from jedisite.vocabulary.words import plural
from tasks_app.domain.jumbo_use import ENABLED, read_use
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.generation_pass import GenerationPass
from tasks_app.generation.rules import explanation
from tasks_app.generation.rules.explanation import THROTTLED, WAITS, Explanation, Until
from tasks_app.generation.turn_steps import TurnResult, generate
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.lifecycle.job_hooks import CannotStoreError
from tasks_app.models import Task
from tasks_app.params.buildstep import BadBuildError
from tasks_app.params.placeholders import BadTemplate, UnresolvedPlaceholder

ME = "job_generator"

HAS_WORK = """
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.status = 'ready'
         AND d.type IN ('input', 'pseudo_input') AND d.nfilestobeused > d.nfilesused)
"""


def take_turn(task: Task, fence: int, around: GenerationPass, jobs_a_task: int) -> TurnResult:
    """Make up to `jobs_a_task` jobs of a claimed task, keep what the broker decided, and free the task.

    Raises LostClaimError.
    """
    now = timezone.now()
    result = _make(task, fence, around, now, jobs_a_task)
    _keep(task, result, around, now)
    if result.jobs:
        _go_on(task, fence, result)
    elif result.why is not None:
        _wait(task, fence, result.why, around.read_at)
    return result


def _make(task: Task, fence: int, around: GenerationPass, now: datetime, jobs_a_task: int) -> TurnResult:
    room, refused = around.throttle.room(task), around.throttle.refuses(task)
    waits = refused and read_use(task.use_jumbo) in ENABLED
    if (refused or room == 0) and not waits:
        return TurnResult(why=THROTTLED)
    most = jobs_a_task if room is None or waits else min(room, jobs_a_task)
    try:
        return generate(task, fence, around, now, max_jobs=most, for_jumbo=waits)
    except (BadBuildError, BadTemplate, CannotStoreError, UnresolvedPlaceholder) as exc:
        return TurnResult(why=explanation.impossible(exc))


def _keep(task: Task, result: TurnResult, around: GenerationPass, now: datetime) -> None:
    """Keep what was decided at `now`: that no site takes files of more memory, or where jobs could go."""
    found = result.brokered
    if found is None:
        return
    facts = as_json(found.facts) if found.facts is not None else None
    records.keep(
        records.Decided(
            task.id,
            found.verdict,
            found.needs,
            broker=found.broker,
            facts=facts,
            snapshots=around.snapshots,
            at=now,
        )
    )


def _go_on(task: Task, fence: int, result: TurnResult) -> None:
    """Free a task that got jobs, in the state that it then has, and with what holds up the rest."""
    note = result.why.sentence if result.why is not None else ""
    now_at, what = (TaskStatus.SCOUTING, "scout job") if result.scouting else (TaskStatus.RUNNING, "job")
    if task.status == now_at:
        changed = note if (task.error_dialog or "") != note else None
        claims.release_task(task.id, fence, note=changed, thawed=True)
        return
    task_moves.move_task(
        task.id,
        now_at,
        by=ME,
        reason=plural(result.jobs, f"{what} was made", f"{what}s were made"),
        fence=fence,
        error_dialog=note or None,
        start_time=task.start_time or timezone.now(),
    )


def _wait(task: Task, fence: int, why: Explanation, read_at: datetime) -> None:
    """Free a task that got no jobs, with the sentence on that."""
    if why.until is Until.NEVER:
        task_moves.break_task(task.id, fence, by=ME, reason=why.sentence)
    elif why.until is Until.GRID_CHANGED:
        site_waits.set_aside(task.id, fence, by=ME, reason=why.sentence, read_at=read_at)
    else:
        claims.release_task(task.id, fence, wait=WAITS[why.until], note=why.sentence or None)
