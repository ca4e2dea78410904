"""All that the page of one workflow is made of, read once: eight queries, however many packages there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import words
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.models import Task, Workflow
from tasks_app.web.tasks.page_queries import latest_verdicts
from tasks_app.workflows.expected_ends import Ends, ends_of, times_of
from tasks_app.workflows.package_facts import PackageFact, package_facts
from tasks_app.workflows.rules.definition import Definition
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.rules.workflow_sentences import WorkflowFacts, sentence_of
from tasks_app.workflows.submitting_workflows import definition_of
from tasks_app.workflows.workflow_states import WorkflowState

_SPEAKING: Final = frozenset(
    {TaskStatus.PENDING, TaskStatus.THROTTLED, TaskStatus.EXHAUSTED, TaskStatus.PAUSED, TaskStatus.STAGING}
)
"""States of a task that say by themselves why it makes no job."""


@dataclass(frozen=True, slots=True)
class SeenWorkflow:
    workflow: Workflow
    definition: Definition
    graph: Graph
    facts: Sequence[PackageFact]
    ends: Ends
    tasks: Sequence[Task]
    sentence: str

    @property
    def states(self) -> list[PackageStatus]:
        return [fact.status for fact in self.facts]

    @property
    def ending(self) -> str:
        """What is known of the end, in a sentence; "" when all has ended."""
        found = self.ends.forecast
        if not found.left:
            return ""
        chain = f"The longest chain that is left has {plural(len(found.chain), 'package')}"
        if found.chain_s is None:
            return f"{chain}. How long it takes is not known: no package like these has ended."
        chain += f" and takes about {words.duration(found.chain_s)}"
        if found.failed:
            return f"{chain} once what has failed is retried or dropped."
        if found.held:
            return f"{chain} once what is on hold is resumed."
        if found.rate_s is not None and found.rate_s > found.chain_s:
            return f"{chain}; at the rate until now, all that is left takes {words.duration(found.rate_s)}."
        return f"{chain}."

    def expected_end(self, now: datetime) -> datetime | None:
        seconds = self.ends.forecast.seconds
        is_held = getattr(self.workflow, "state", "") == WorkflowState.HELD
        return None if seconds is None or is_held else now + timedelta(seconds=seconds)


def seen(workflow: Workflow, now: datetime) -> SeenWorkflow:
    """The workflow, which has its `state`. Raises ParamErrors when its definition is refused by the checks of today."""
    definition, graph = definition_of(workflow)
    facts = package_facts(workflow)
    numbers = sorted({fact.task_id for fact in facts if fact.task_id is not None})
    tasks = list(Task.objects.filter(pk__in=numbers).only("id", "name", "status", "error_dialog").order_by("pk"))
    why = _why(tasks)
    ends = ends_of(graph, facts, times_of(numbers), now)
    told = WorkflowFacts(
        workflow.owner,
        [fact.status for fact in facts],
        is_held=all(task.status in (TaskStatus.PAUSED, *TASK_FINAL) for task in tasks)
        and any(task.status == TaskStatus.PAUSED for task in tasks),
        has_begun=bool(workflow.container),
        failures={at: fact.failures for at, fact in enumerate(facts) if fact.failures},
        sites={at: fact.site for at, fact in enumerate(facts) if fact.site},
        why={at: why[fact.task_id] for at, fact in enumerate(facts) if fact.task_id in why},
        blocked=ends.forecast.blocked,
    )
    return SeenWorkflow(workflow, definition, graph, facts, ends, tasks, sentence_of(graph, told))


def _why(tasks: Sequence[Task]) -> Mapping[int | None, str]:
    """Why tasks make no jobs now, of those of which it is known."""
    open_ones = [task for task in tasks if task.status not in TASK_FINAL]
    verdicts = latest_verdicts(task.id for task in open_ones)
    found: dict[int | None, str] = {}
    for task in open_ones:
        verdict = verdicts.get(task.id)
        if task.status == TaskStatus.PENDING and verdict is not None and not verdict.chosen:
            found[task.id] = verdict.sentence
        elif task.status in _SPEAKING:
            more = f" ({task.error_dialog})" if task.error_dialog else ""
            found[task.id] = f"task {task.id} is {task.status}{more}"
    return found
