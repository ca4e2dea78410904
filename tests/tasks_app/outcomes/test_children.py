from __future__ import annotations

from collections.abc import Callable

import pytest

from tasks_app.domain.states import TASK_MOVES, TaskStatus
from tasks_app.models import Task
from tasks_app.outcomes.children import REJECTS_CHANGES, abort_descendants

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", sorted(TaskStatus))
def test_what_becomes_of_a_child_in_each_state(make_task: Callable[..., Task], status: TaskStatus) -> None:
    parent = make_task(status="failed")
    child = make_task(status=status, parent_id=parent.id)
    grandchild = make_task(status="running", parent_id=child.id)
    spared = status in REJECTS_CHANGES
    assert abort_descendants(parent.id, "failed", by="test") == (0 if spared else 2)
    for task in (child, grandchild):
        task.refresh_from_db()
    assert (child.status, grandchild.status) == ((status, "running") if spared else ("toabort", "toabort"))


def test_whatever_can_be_aborted_may_be() -> None:
    assert all(TaskStatus.TOABORT in TASK_MOVES[status] for status in set(TaskStatus) - REJECTS_CHANGES)


def test_a_task_that_is_its_own_parent_is_not_its_child(make_task: Callable[..., Task]) -> None:
    alone = make_task(id=20_000_000, parent_id=20_000_000)
    assert abort_descendants(alone.id, "failed", by="test") == 0
    alone.refresh_from_db()
    assert alone.status == "running"
