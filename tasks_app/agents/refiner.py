"""The refiner: turns submitted parameters into a task with datasets, templates of names, and a template of parameters."""

from __future__ import annotations

from functools import partial

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.lifecycle import claims
from tasks_app.submission.assignment import Policy
from tasks_app.submission.refining_turns import ME, refine_task

LIMIT = 50


@agent("refiner", every="5s", title="Turns submitted parameters into tasks with datasets")
def run(limit: int = LIMIT) -> Pass:
    statuses = [TaskStatus.REGISTERED, TaskStatus.STAGED, TaskStatus.REREFINE]
    claimed = claims.claim_tasks(owner(), statuses, limit, agent=ME)
    if not claimed:
        return Pass()
    refine_one = partial(refine_task, queues_and_shares=Policy.read())
    return Pass(claims.for_each(claimed, refine_one, by=ME), more=len(claimed) == limit)
