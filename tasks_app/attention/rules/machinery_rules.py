"""Rules on the machinery itself: agents that are late or fail, and queues that are full. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.attention_facts import AgentFact, BacklogFact, TroubleFact
from tasks_app.attention.rules.findings import Found, address, few, hours, in_a_row, largest, sentence

FAILS_IN_A_ROW: Final = 3
FULL_OLDEST_S: Final = 300.0
FULL_NUMBER: Final = 20
"""Less than this is no full queue, however old: one passes that is taken up again and again."""


def late_agents(agents: Iterable[AgentFact]) -> Iterator[Found]:
    """Agents that are overdue by more than three periods, or whose last passes failed, one after the other."""
    found = []
    for agent in agents:
        if agent.paused:
            continue
        if agent.errors_in_a_row >= FAILS_IN_A_ROW:
            last = agent.last_error.strip().rpartition("\n")[2][:200]
            text = sentence(f"Agent {agent.name} has failed {in_a_row(agent.errors_in_a_row)}", last)
        elif agent.late:
            text = sentence(f"Agent {agent.name} is overdue by {hours(agent.late_s)}", agent.title)
        else:
            continue
        size = round(agent.late_s / 60)
        found.append(Found("late_agent", agent.name, text, address("agents"), "", size, "min late", agent.last_ended))
    yield from few(largest(found), "agents are late or fail", address("agents"))


def paused_agents(agents: Iterable[AgentFact]) -> Iterator[Found]:
    """Paused agents, at once: their work stops for everybody, and no other page shows why."""
    found = []
    for agent in agents:
        if not agent.paused:
            continue
        text = sentence(
            f"Agent {agent.name} is paused {agent.pause}".rstrip(),
            agent.title,
            f"{plural(agent.tasks, 'open task is', 'open tasks are')} in states that it handles" if agent.tasks else "",
        )
        path = address("agents", agent.name)
        found.append(Found("paused_agent", agent.name, text, path, "", agent.tasks, "tasks", agent.paused_at))
    yield from few(largest(found), "agents are paused", address("agents"))


def troubles(facts: Iterable[TroubleFact]) -> Iterator[Found]:
    """Tasks and jobs that an agent has put aside because its work on them failed unexpectedly."""
    found = []
    for fact in sorted(facts, key=lambda one: (one.since, one.agent, one.kind, one.subject)):
        task = f"Task {fact.task} {fact.name[:80]}".strip() if fact.task is not None else ""
        subject = ", ".join(filter(None, (task, f"job {fact.subject}" if fact.kind == "job" else "")))
        times = in_a_row(fact.failures)
        text = sentence(f"{subject[:1].upper()}{subject[1:]}: the agent {fact.agent} has failed {times}", fact.error)
        path = address("tasks", fact.task, "why") if fact.task is not None else address("jobs", fact.subject)
        key = f"{fact.agent}:{fact.kind}:{fact.subject}"
        found.append(Found("trouble", key, text, path, fact.user, fact.failures, "failures", fact.since))
    yield from few(found, "tasks and jobs have been put aside by an agent", address("agents"))


def full_queues(backlogs: Iterable[BacklogFact]) -> Iterator[Found]:
    """Queues of the machinery whose oldest entry has waited for minutes."""
    for backlog in backlogs:
        if backlog.number < FULL_NUMBER or backlog.oldest_s < FULL_OLDEST_S:
            continue
        text = sentence(f"{backlog.number} {backlog.title}, the oldest for {hours(backlog.oldest_s)}")
        yield Found("backlog", backlog.name, text, backlog.path, "", backlog.number, "waiting")
