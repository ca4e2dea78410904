"""The feeder: finds the files of a task's inputs and stores them. Growing datasets are checked repeatedly."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from django.utils import timezone

from jedisite.agents.passes import owner
from jedisite.agents.registry import Pass, agent
from tasks_app.domain.states import TaskStatus
from tasks_app.inputs.awaited_inputs import BEGUN, GROWING, GROWING_IN, HAS_WORK, growing_by
from tasks_app.inputs.feed import PORTION
from tasks_app.inputs.feeding_turns import ME, feed_task
from tasks_app.lifecycle import claims
from tasks_app.lifecycle.turn_order import Turns

LIMIT = 20
PASS_S = 5.0
"""After so long a pass begins no further turn: the next one sees what has been submitted meanwhile."""


@agent("feeder", every="5s", title="Finds the files of input datasets")
def run(limit: int = LIMIT, now: datetime | None = None, portion: int = PORTION) -> Pass:
    """Feed newly defined tasks, then check datasets that grow. A turn stores about `portion` rows of a task at most."""
    now = now or timezone.now()
    work = partial(feed_task, now=now, portion=portion)
    claimed = claims.claim_tasks(
        owner(), [TaskStatus.DEFINED], limit, condition=HAS_WORK, agent=ME, turns=Turns(begun=BEGUN)
    )
    items = claims.for_each(claimed, work, by=ME, for_s=PASS_S)
    # The wait that the job generator sets while files are too few for a job must not keep more files away.
    due = growing_by(now)
    growing = claims.claim_tasks(owner(), GROWING_IN, limit, condition=GROWING, values=due, even_waiting=True, agent=ME)
    items += claims.for_each(growing, work, by=ME, for_s=PASS_S)
    return Pass(items, more=len(claimed) == limit or len(growing) == limit)
