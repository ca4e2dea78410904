"""What people may do to a workflow or a line of it now, as buttons that lead to a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from jedisite.identity.callers import Caller, Right
from tasks_app.models import Workflow
from tasks_app.workflows.workflow_states import ENDED, WorkflowState

DROP: Final = "drop"
RETRY: Final = "retry"


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
        return self.name in (DROP, RETRY)


ACTS: Final[Mapping[str, WorkflowAct]] = {
    one.name: one
    for one in (
        WorkflowAct("hold", "Hold", "No further job is made until it is resumed.", "Resume takes it back."),
        WorkflowAct("resume", "Resume", "Jobs are made again.", "Hold takes it back."),
        WorkflowAct(
            RETRY,
            "Retry",
            "Packages that have failed get new attempts, and what waits for them goes on when they succeed.",
            "New jobs are made within minutes; a kill ends them.",
        ),
        WorkflowAct(
            "priority", "Change priority", "Its tasks get another priority.", "The old value can be set again."
        ),
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
ON_PACKAGES: Final = ((RETRY, "Retry"), (DROP, "Drop their lines"))
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


def buttons_of(workflow: Workflow, caller: Caller, *, line: str = "", has_failed: bool = False) -> Sequence[Button]:
    """What this caller may do; the page behind a button says what it would hit. `workflow` has its `state`; `has_failed`: a
    package of the line."""
    state = getattr(workflow, "state", "")
    if not caller.may_command(workflow.owner) or state in ENDED:
        return ()
    names = (RETRY, DROP) if line and has_failed else (DROP,) if line else _FITTING.get(state, ())
    if not line and not workflow.container:
        names = ("resume", "kill")
    given = f"?{urlencode({'line': line}, safe='/')}" if line else ""
    return [
        Button(ACTS[name], reverse("dashboard:workflow-do", args=[workflow.pk, name]) + given)
        for name in names
        if name != "priority" or caller.may(Right.STEER)
    ]
