"""What stands against many tasks at once, in a sentence each: for lists, where the gates of each would ask too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from brokerage_app.models import VerdictRecord
from tasks_app.domain import words
from tasks_app.domain.states import TaskStatus
from tasks_app.explaining.queries import pilots_of
from tasks_app.explaining.rules.run_gates import at_queues, by_pilots
from tasks_app.explaining.rules.wait_facts import PilotFact, WhyFacts

# The task stands where the state does in what is asked of one task.
_OF_TASKS = """
SELECT jeditaskid AS jobstatus, computingsite AS site, count(*) AS n
  FROM jobs WHERE jeditaskid = ANY(%(tasks)s) AND jobstatus = 'activated' AND computingsite IS NOT NULL GROUP BY 1, 2
"""


def blocking(status: str, error_dialog: str | None, verdict: VerdictRecord | None) -> str:
    """Why a task gets no further, in a sentence; empty when it did all it was asked, or nothing is known to block it."""
    if status == TaskStatus.DONE:
        return ""
    if words.is_final_task(status):
        return error_dialog or ""
    if verdict is not None and not verdict.chosen:
        return verdict.sentence
    return error_dialog or ""


def without_pilots(status_of: dict[int, str], now: datetime) -> dict[int, str]:
    """Of tasks by number, with their states: a sentence for each whose activated jobs no pilot takes. One query, or none."""
    if not status_of:
        return {}
    pilots: dict[int, list[PilotFact]] = defaultdict(list)
    for task, at_site in pilots_of(_OF_TASKS, {"tasks": sorted(status_of)}, now):
        pilots[int(task)].append(at_site)
    said = {task: _said(status_of[task], found) for task, found in pilots.items()}
    return {task: sentence for task, sentence in said.items() if sentence}


def _said(status: str, pilots: Sequence[PilotFact]) -> str:
    facts = WhyFacts(status, pilots=tuple(sorted(pilots, key=lambda one: (-one.waiting, one.site))))
    return next((gate.sentence for gate in (at_queues(facts), by_pilots(facts)) if gate.answer == "no"), "")
