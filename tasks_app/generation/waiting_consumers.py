"""Consumers for which no queue has room, while queues for jumbo jobs take those of their task: they are made, and wait.

Jumbo jobs take the ranges of their jobsets. Consumers that wait are looked after in `events_app.jumbo`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tasks_app.domain.jumbo_use import ENABLED, WAITING_QUEUE, consumers_wait, read_use
from tasks_app.generation.grid_view import GridView
from tasks_app.generation.rules.job_plan import Place
from tasks_app.generation.rules.jumbo_needs import jumbo_needs
from tasks_app.generation.turn_facts import TurnFacts, masters_of

MOST: Final = 1_000
"""Files of a task that wait: with these jumbo jobs have enough to do."""
ANY_NUMBER: Final = 2**62


def waiting_place(turn: TurnFacts, view: GridView) -> Place | None:
    """Where consumers of a task wait for which no queue was chosen; None when they do not. Other tasks cost nothing."""
    use = read_use(turn.task.use_jumbo)
    if use not in ENABLED or turn.task.site:
        return None
    room = MOST - sum(master.files_waiting for master in masters_of(turn.inputs))
    found = view.decide(jumbo_needs(turn.needs, ANY_NUMBER), turn.task, turn.now).verdict.chosen if room > 0 else ()
    if not consumers_wait(use, scouting=turn.scouting, places=0, jumbo_queues=len(found)):
        return None
    site = replace(view.site(found[0].site), name=WAITING_QUEUE, parent="")
    limits = turn.limits(site, found[0].work_dir_mb)
    return Place(site, replace(found[0], site=WAITING_QUEUE), limits, room)
