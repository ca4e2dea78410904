"""One task's turn with the refiner: its parameters become rows, or it waits, or breaks, with a sentence on why."""

from __future__ import annotations

from dataclasses import replace

from django.utils import timezone

from tasks_app.ddm.base import ForeignDatasetError
from tasks_app.domain.states import TaskStatus
from tasks_app.inputs import makers
from tasks_app.inputs.constituents import constituents_of
from tasks_app.inputs.preprocessed import results_of
from tasks_app.lifecycle import serials, standing, task_moves
from tasks_app.models import Dataset, Task, TaskParams
from tasks_app.models.dataset import OUTPUT_TYPES
from tasks_app.params.schema import ParamErrors, parse
from tasks_app.params.schema import TaskParams as Params
from tasks_app.refining.base import CannotRefine, NotYet, ParentView, Refined, refine
from tasks_app.refining.offered import check_refined
from tasks_app.refining.values import NothingThere
from tasks_app.submission import assignment, rerefining, storing
from tasks_app.submission.rehearsal import check_offered, policy_of

ME = storing.ME


def refine_task(task_id: int, fence: int, *, queues_and_shares: assignment.Policy) -> None:
    """Refine a claimed task, for the first time or again, and move it on; or say what it waits for, or why it breaks."""
    task = Task.objects.get(pk=task_id)
    parent, found_before = _parent_of(task), results_of(task_id)
    try:
        # What it was accepted with stays when it runs again: changes were compared with it when they were given.
        params = parse(TaskParams.objects.get(pk=task_id).params, stored=task.status == TaskStatus.REREFINE)
        check_offered(params, task.vo)
        namesake = _namesake_of(task, params)
        if namesake is not None:
            sentence = f"task {namesake} of {task.user} has the same name, which must be unique"
            task_moves.move_task(
                task_id, TaskStatus.TOABORT, by=ME, reason=sentence, fence=fence, error_dialog=sentence
            )
            return
        found = refine(
            params,
            task_id=task_id,
            user=task.user,
            now=timezone.now(),
            parent=parent,
            policy=policy_of(task),
            constituents=constituents_of(params, parent, task_id, found_before),
            preprocessed=found_before,
        )
        refined = _check_names(task, found)
        if task.status == TaskStatus.REREFINE:
            refined = rerefining.with_kept(task, refined)
        check_refined(refined.task, kept=params.raw if params.stored else ())
        refined = assignment.placed(refined, params, queues_and_shares)
        if task.status == TaskStatus.REREFINE:
            rerefining.store(task, fence, refined)
        else:
            storing.store(task, fence, refined)
    except NotYet as exc:
        # As it was read before refining: a parent that had ended then changes nothing any more.
        ran = parent is not None and parent.progress == "running"
        task_moves.set_aside(task_id, fence, by=ME, reason=str(exc), frozen=False, parent_ran=ran)
    except ParamErrors as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=" ".join(f"{e.field}: {e.message}" for e in exc.errors[:5]))
    except NothingThere as exc:
        _wait_or_break(task_id, fence, exc)
    except (CannotRefine, ForeignDatasetError) as exc:
        task_moves.break_task(task_id, fence, by=ME, reason=str(exc))


def _wait_or_break(task_id: int, fence: int, exc: NothingThere) -> None:
    """An input that is not there, or empty: the task waits when another is still to fill it, and cannot run otherwise."""
    said = str(exc).removesuffix(".")
    if at_work := sorted(set(makers.still_at_it(exc.names, task_id).values())):
        task_moves.set_aside(task_id, fence, by=ME, reason=f"{said}; it waits for task {at_work[-1]}, which makes it")
        return
    ended = "; ".join(makers.how_they_ended(exc.names).values())
    task_moves.break_task(task_id, fence, by=ME, reason=f"{said}: {ended}." if ended else str(exc))


def _namesake_of(task: Task, params: Params) -> int | None:
    """An older task of the same user and name, when the name is to be unique. Two submissions at once may have missed it."""
    if task.status != TaskStatus.REGISTERED or not params.flag("uniqueTaskName"):
        return None
    older = Task.objects.filter(user=task.user, name=task.name, id__lt=task.id).having_names().order_by("-id")
    return older.values_list("id", flat=True).first()


def _parent_of(task: Task) -> ParentView | None:
    if not task.parent_id or task.parent_id == task.id:
        return None
    status = standing.foreseen_states([task.parent_id]).get(task.parent_id)
    outputs = Dataset.objects.filter(task_id=task.parent_id, type__in=OUTPUT_TYPES).values_list("name", flat=True)
    return ParentView(task.parent_id, status, frozenset(outputs))


def _check_names(task: Task, refined: Refined) -> Refined:
    """Make sure that no other task makes files of the same names: serial numbers go on after those of ended tasks.

    Raises CannotRefine when another task with the same names has not ended.
    """
    templates = []
    names = [(t.filenametemplate, refined.datasets[t.dataset].datasetname) for t in refined.templates]
    for template, others in zip(refined.templates, serials.others_with(names, task), strict=True):
        if others.running is not None:
            taken = serials.taken_by(others.running, template.filenametemplate)
            raise CannotRefine(f"{taken}; put $JEDITASKID into the name")
        templates.append(replace(template, serialnr=max(template.serialnr, others.serial)))
    return replace(refined, templates=tuple(templates))
