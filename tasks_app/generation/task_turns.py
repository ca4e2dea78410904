"""A task's turn in the job generator: jobs are made of its input, what the broker decided is kept, and the task is freed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.utils import timezone

from brokerage_app.verdicts import records
from brokerage_app.vocabulary.stored import as_json
from brokerage_app.vocabulary.verdict import Verdict
from jedisite import refusals
from jedisite.vocabulary.words import plural
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.grid_view import World
from tasks_app.generation.groups import Throttle
from tasks_app.generation.user_jobs import UserJobs
from tasks_app.generation.work import Turn, generate
from tasks_app.lifecycle import claims, site_waits, task_moves
from tasks_app.models import Task
from tasks_app.params.buildstep import BadBuildError
from tasks_app.params.placeholders import BadTemplate, UnresolvedPlaceholder

ME = "job_generator"
FULL_WAIT = timedelta(seconds=2)
"""Until a task whose sites are full is looked at again; a job that starts or ends makes room earlier."""
UNREAD_WAIT = timedelta(seconds=30)
"""Until a task is looked at again one of whose inputs has to be read first."""

NOT_FILLED = "the files that are left do not fill a job yet; more are to come"

HAS_WORK = """
EXISTS (SELECT 1 FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.status = 'ready'
         AND d.type IN ('input', 'pseudo_input') AND d.nfilestobeused > d.nfilesused)
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What one pass knows: the grid, with the copies of it that verdicts keep, what may be made, and the jobs of users.

    `read_at`: before the grid was read, by the database's clock.
    """

    world: World
    snapshots: records.Snapshots
    throttle: Throttle
    read_at: datetime
    crowd: UserJobs = field(default_factory=UserJobs)


def take_turn(task: Task, fence: int, around: Surroundings, jobs_a_task: int) -> Turn | None:
    task_id, room = task.id, around.throttle.room(task)
    if room == 0:
        claims.release_task(task_id, fence)
        return None
    most, now = jobs_a_task if room is None else min(room, jobs_a_task), timezone.now()
    try:
        turn = generate(task, fence, around.world, now, max_jobs=most, crowd=around.crowd)
        around.throttle.made(task, turn.jobs)
    except BadBuildError as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=f"its sources cannot be built: {exc}")
        return None
    except (UnresolvedPlaceholder, BadTemplate) as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=f"the parameters of a job cannot be made: {exc}")
        return None
    _keep(task, turn, around, now)
    _conclude(task, fence, turn, around.read_at)
    return turn


def _keep(task: Task, turn: Turn, around: Surroundings, now: datetime) -> None:
    """Keep what was decided at `now`: that no site takes files of more memory, or where jobs could go."""
    decided, needs = turn.first, turn.needs
    if decided is None or needs is None:
        return
    if turn.unplaced and not turn.jobs:
        memory_mb, decided = next(iter(turn.unplaced.items()))
        needs = replace(needs, memory_mb=memory_mb, memory_raised=True)
    facts = as_json(turn.known) if turn.known is not None else None
    broker, snapshots = around.world.broker_of(needs), around.snapshots
    records.keep(records.Decided(task.id, decided, needs, broker=broker, facts=facts, snapshots=snapshots, at=now))


def _conclude(task: Task, fence: int, turn: Turn, read_at: datetime) -> None:
    """Free the task, in the state and with the sentence that fit what came of its turn."""
    unplaced = _unplaced(turn)
    if turn.jobs:
        now_at, what = (TaskStatus.SCOUTING, "scout job") if turn.scouting else (TaskStatus.RUNNING, "job")
        if task.status != now_at:
            task_moves.move_task(
                task.id,
                now_at,
                by=ME,
                reason=plural(turn.jobs, f"{what} was made", f"{what}s were made"),
                fence=fence,
                error_dialog=unplaced or None,
                start_time=task.start_time or timezone.now(),
            )
        else:
            note = unplaced if (task.error_dialog or "") != unplaced else None
            claims.release_task(task.id, fence, note=note, thawed=True)
        return
    if turn.unread:
        # Not pending: the feeder looks at the inputs of tasks that work.
        claims.release_task(task.id, fence, wait=UNREAD_WAIT, note=turn.unread)
        return
    if turn.waits_for:
        site_waits.set_aside(task.id, fence, by=ME, reason=turn.waits_for, read_at=read_at)
        return
    if unplaced:
        if all(map(_only_full, turn.unplaced.values())):
            claims.release_task(task.id, fence, wait=FULL_WAIT, note=unplaced)
        else:
            site_waits.set_aside(task.id, fence, by=ME, reason=unplaced, read_at=read_at)
        return
    if turn.verdict.chosen:
        # Sites would take jobs.
        claims.release_task(task.id, fence, wait=FULL_WAIT, note=NOT_FILLED if turn.input_left else None)
        return
    if _only_full(turn.verdict):
        note = turn.verdict.sentence()
        claims.release_task(task.id, fence, wait=FULL_WAIT, note=note if note != task.error_dialog else None)
        return
    site_waits.set_aside(task.id, fence, by=ME, reason=turn.verdict.sentence(), read_at=read_at)


def _only_full(verdict: Verdict) -> bool:
    """Whether at least one site was skipped for no other reason than its full queue."""
    return any(refusals.get(skip.code).group in ("capacity", "throttle") for skip in verdict.skipped)


def _unplaced(turn: Turn) -> str:
    """A sentence on the files whose jobs no site takes for their memory; empty without any."""
    return " ".join(
        f"Files that need {memory_mb} MB wait: {verdict.sentence()}"
        for memory_mb, verdict in sorted(turn.unplaced.items())
    )
