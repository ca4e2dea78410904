"""What people may do to a workflow or a line of it now, as buttons that lead to a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from jedisite.identity.callers import Caller, Right
from tasks_app.domain.states import TASK_FINAL
from tasks_app.models import Task, Workflow, WorkflowPackage
from tasks_app.workflows.package_facts import PackageFact
from tasks_app.workflows.rules.package_states import ENDED as PACKAGES_ENDED
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.workflow_states import ENDED, WorkflowState

DROP: Final = "drop"
RETRY: Final = "retry"
STEERED: Final = ("hold", "resume", "priority")
"""Done to tasks of a workflow, and to single packages without their tasks."""


@dataclass(frozen=True, slots=True)
class WorkflowAct:
    """`sentence` says what it does to `{what}`, which is the workflow, or a stage or line of it."""

    name: str
    title: str
    sentence: str
    undo: str
    ends_work: bool = False

    def question(self, what: str) -> str:
        """Whether it shall be done to this: `Hold stage 2 of reco001?`"""
        return f"{self.title}{' of' if self.name == 'priority' else ''} {what}?"

    @property
    def for_lines(self) -> bool:
        """Whether it can be done to lines, and to packages that are chosen in their list."""
        return self.name in (DROP, RETRY, *STEERED)


ACTS: Final[Mapping[str, WorkflowAct]] = {
    one.name: one
    for one in (
        WorkflowAct(
            "hold", "Hold", "No further job starts until it is resumed. Jobs that run go on.", "Resume takes it back."
        ),
        WorkflowAct("resume", "Resume", "Jobs are made again.", "Hold takes it back."),
        WorkflowAct(
            RETRY,
            "Retry",
            "Packages that have failed get new attempts, and what waits for them goes on when they succeed.",
            "New jobs are made within minutes; a kill ends them.",
        ),
        WorkflowAct("priority", "Change priority", "Its jobs get another priority.", "The old value can be set again."),
        WorkflowAct(
            "kill",
            "Kill",
            "Jobs are killed, and no further ones are made. Files of packages that have succeeded stay.",
            "This cannot be undone.",
            ends_work=True,
        ),
        WorkflowAct(
            DROP,
            "Drop",
            "Packages that have not succeeded are canceled, and others go on without the files that they would have written. "
            "Packages that lose all of their files are canceled as well.",
            "This cannot be undone.",
            ends_work=True,
        ),
    )
}
ON_PACKAGES: Final = ((RETRY, "Retry"), ("hold", "Hold"), ("resume", "Resume"), (DROP, "Drop their lines"))
"""What can be done to packages that are chosen in their list."""
_S = WorkflowState
_FITTING: Final[Mapping[str, tuple[str, ...]]] = {
    _S.HELD: ("resume", "priority", "kill"),
    _S.WAITING: ("hold", "priority", "kill"),
    _S.RUNNING: ("hold", "retry", "priority", "kill"),
    _S.FAILED: ("retry", "hold", "priority", "kill"),
}


@dataclass(frozen=True, slots=True)
class Button:
    act: WorkflowAct
    url: str


def buttons_of(
    workflow: Workflow, caller: Caller, *, line: str = "", packages: Sequence[PackageFact] = ()
) -> Sequence[Button]:
    """What this caller may do; the page behind a button says what it would hit. `workflow` has its `state`; `packages`: those of
    the line."""
    state = getattr(workflow, "state", "")
    if not caller.may_command(workflow.owner) or state in ENDED:
        return ()
    names = _for_line(packages) if line else _FITTING.get(state, ())
    if not line and state == _S.FAILED and not _has_open_tasks(workflow):
        names = (RETRY,)
    if not line and not workflow.container:
        names = ("resume", "kill")
    given = f"?{urlencode({'line': line}, safe='/')}" if line else ""
    return [
        Button(ACTS[name], reverse("dashboard:workflow-do", args=[workflow.pk, name]) + given)
        for name in names
        if name != "priority" or caller.may(Right.STEER)
    ]


def _has_open_tasks(workflow: Workflow) -> bool:
    """Whether something of it can be held or killed: what has failed may have ended as a whole."""
    tasks = WorkflowPackage.objects.filter(workflow=workflow, task_id__isnull=False).values("task_id")
    return Task.objects.filter(pk__in=tasks).exclude(status__in=TASK_FINAL).exists()


def _for_line(packages: Sequence[PackageFact]) -> Sequence[str]:
    """What fits the packages of a line: nothing when all have ended."""
    left = [fact for fact in packages if fact.status not in PACKAGES_ENDED]
    if not left:
        return ()
    fits = {
        RETRY: any(fact.status is PackageStatus.FAILED for fact in left),
        "hold": any(not fact.is_held and fact.task_id is not None for fact in left),
        "resume": any(fact.is_held for fact in left),
        "priority": any(fact.task_id is not None for fact in left),
        DROP: True,
    }
    return [name for name, is_fit in fits.items() if is_fit]
