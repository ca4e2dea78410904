"""Refining before a task is stored: what would break it for its parameters alone is said at the door."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.db.models import Q
from django.utils import timezone

from brokerage_app.brokers import production_task
from brokerage_app.formulas.switches import switches_of
from brokerage_app.formulas.walltime import is_ineffective, is_undefined
from brokerage_app.grid.configured import configuration
from brokerage_app.grid.installed_policy import share_tree
from brokerage_app.models import Queue
from brokerage_app.policy.workqueues import WorkQueues
from jedisite.identity.session_users import SUPER_GROUP_USERS, SUPER_USERS, special_groups_of
from jedisite.vocabulary.words import sentence
from tasks_app.configured.site_limits import most_records
from tasks_app.domain.range_jobs import MODES_OF_RANGES
from tasks_app.models import Task
from tasks_app.params import commandline
from tasks_app.params.clientwords import is_from_client, option_of
from tasks_app.params.faults import Faults, FieldError, ParamErrors
from tasks_app.params.partners import OF_NUCLEI
from tasks_app.params.rules import amount
from tasks_app.params.schema import TaskParams, parse
from tasks_app.params.splitrule import SplitRule
from tasks_app.refining import offered
from tasks_app.refining.base import CannotRefine, NotYet, Policy, refine, refiner_for
from tasks_app.refining.policy import Draws
from tasks_app.refining.production import refine_production
from tasks_app.submission import assignment

JUMBO_SWITCH = "useJumboJobs"
NUMBER = 9_999_999_999
"""Stands in names for the number of the task, which it does not have yet: no task has a longer one."""


def policy_of(task: Task) -> Policy:
    """What the configuration (component taskrefiner) says for the VO of a task, and its numbers of chance.

    They depend on the task alone: refined once more, it gets the same. Outputs go straight to the datasets that tasks
    name: nothing makes datasets from templates yet.
    """
    found, vo = configuration(), task.vo or ""

    def read(key: str) -> Any:
        return found.get("taskrefiner", key, vo=vo)

    refiner = refiner_for(task.vo or "", task.prod_source_label or "", task.task_type or "")
    is_production = refiner is refine_production
    push = "PROD_TASKS_PUSH_STATUS_CHANGES_PERCENT" if is_production else "USER_TASKS_PUSH_STATUS_CHANGES_PERCENT"
    chance = {name: random.Random(f"{task.id} {name}").random() for name in ("push", "input", "events")}
    groups = frozenset() if is_production else special_groups_of(task.user or "")
    return Policy(
        super_users=frozenset({task.user} if SUPER_USERS in groups else ()),
        super_group_users=frozenset({task.user} if SUPER_GROUP_USERS in groups else ()),
        push_status_percent=read(push),
        move_input_percent=read("USER_TASKS_MOVE_INPUT") or 0.0,
        draws=Draws(event_service=chance["events"], push_status=chance["push"], move_input=chance["input"]),
        out_disk_kb=read("OUTDISKCOUNT_ANALY_KB"),
        target_walltime_h=read("USER_JOB_TARGET_WALLTIME"),
        max_core_count=read("USER_TASKS_MAX_CORE_COUNT"),
    )


def check_offered(params: TaskParams, vo: str | None) -> None:
    """Raises ParamErrors when the task asks for a step that this site cannot take, calls its jobs merge jobs, or is too large.

    Of a task that exists only the last is asked: the others have come since it was submitted.
    """
    faults = Faults()
    if not params.stored:
        offered.check_offered(params.raw, faults)
    amount(params, most_records(vo), faults)
    faults.raise_if_any()


def rehearse(params: TaskParams, task: Task, *, place: bool = False) -> list[str]:
    """Refine parameters as for this task, which need not be stored, and keep nothing of it. Returns what is worth saying.

    What depends on other tasks and on data management is left to the refiner: the parent counts as ended, and containers
    are taken as single datasets. With `place` it also needs a share that takes it; work queues are
    left to the refiner. Raises ParamErrors.
    """
    check_offered(params, task.vo)
    try:
        refined = refine(
            params, task_id=task.id or NUMBER, user=task.user or "", now=timezone.now(), policy=policy_of(task)
        )
        if place:
            assignment.placed(refined, params, assignment.Policy(WorkQueues([]), share_tree()))
    except NotYet:
        return []
    except CannotRefine as exc:
        faults = Faults()
        faults.add("", "refining", sentence(exc))
        faults.raise_if_any()
    if not params.stored:
        offered.check_refined(refined.task)
    transform, of_ranges = str(refined.task["transpath"] or ""), refined.task["eventservice"] in MODES_OF_RANGES
    said = commandline.remarks(params, refined.job_params_template, transform, of_ranges=of_ranges)
    if place:
        said = [*_no_queue_for_jumbo(params), *_no_nucleus(params, task, refined.task), *said]
    return [*_scouts_all_the_same(params, refined.task), *_time_that_counts_as_none(refined.task), *said]


def check_changed(stored: Mapping[str, Any], changed: Mapping[str, Any], task: Task) -> list[str]:
    """Rehearse a task that exists with changed parameters, or with its own.

    What a new task would be refused with, and this one was submitted with, is no fault of the changes: returns it, as
    sentences. Raises ParamErrors with all others.
    """
    params = parse(changed, stored=True)  # what cannot be read at all cannot be kept
    wrong = _refused(changed, params, task)
    if wrong:
        old = _refused(stored, params if changed == stored else parse(stored, stored=True), task)
        known = {(fault.field, fault.rule) for fault in old}
        if new := tuple(fault for fault in wrong if (fault.field, fault.rule) not in known):
            raise ParamErrors(new)
    rehearse(params, task)
    return [f"{fault.field or 'task parameters'}: {fault.message}" for fault in wrong]


def _refused(raw: Mapping[str, Any], params: TaskParams, task: Task) -> list[FieldError]:
    """What a new task with these parameters, which can be read, would be refused with."""
    faults = Faults()
    faults.take(lambda: parse(raw))
    faults.take(lambda: check_offered(replace(params, stored=False), task.vo))
    return faults.found


def _no_queue_for_jumbo(params: TaskParams) -> list[str]:
    """Jumbo jobs go to queues that are kept for them; without one there are none until one comes."""
    if not params.whole("nJumboJobs"):
        return []
    told = Queue.objects.filter(Q(catchall__contains=JUMBO_SWITCH) | Q(params__has_key=JUMBO_SWITCH))
    if any(JUMBO_SWITCH in switches_of(*row) for row in told.values_list("catchall", "params")):
        return []
    return [f"nJumboJobs has no effect now: no queue is kept for jumbo jobs ({JUMBO_SWITCH} in its catchall)."]


def _no_nucleus(params: TaskParams, task: Task, columns: Mapping[str, Any]) -> list[str]:
    """What is said of a nucleus that the task does not get."""
    asked = [name for name in OF_NUCLEI if params.raw.get(name) not in (None, False, 0, "")]
    if not asked or columns.get("nucleus"):
        return []
    is_brokered = production_task.is_responsible(configuration(), task.vo or "", task.prod_source_label or "")
    if production_task.needs_nucleus(columns.get("cloud"), None, (), is_brokered=is_brokered):
        return []
    return [f"{name} has no effect: tasks of this kind get no nucleus, and this one names none." for name in asked]


def _scouts_all_the_same(params: TaskParams, columns: Mapping[str, Any]) -> list[str]:
    if not params.flag("skipScout") or "US" not in SplitRule.parse(str(columns["splitrule"] or "")):
        return []
    option = option_of("skipScout", params.raw) if is_from_client(params.raw) else "skipScout"
    return [f"{option} has no effect: only production and official tasks can run without scouts."]


def _time_that_counts_as_none(columns: Mapping[str, Any]) -> list[str]:
    """As JEDI has it: where there is a unit of CPU time, as tasks of analysis always have, only the CPU time counts."""
    names = ("walltime", "walltimeunit", "cputime", "cputimeunit")
    walltime, unit, cpu_time, cpu_unit = (columns[name] for name in names)
    if (walltime or 0) <= 0:
        return []
    if is_ineffective(walltime, unit, cpu_time, cpu_unit):
        says = f"the walltime of jobs is calculated from cpuTime ({cpu_time}) where the events of the input are known"
        return [f"walltime {walltime} has no effect: {says}."]
    if not is_undefined(walltime, unit, cpu_time, cpu_unit):
        return []
    return [
        f"walltime {walltime} has no effect without cpuTime (CPU time per event): the jobs go only to queues that "
        "allow a day."
    ]
