"""Watchdog: classes of queues and of analysis tasks are worked out anew; tasks of class S go to the express share."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.utils import timezone

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.upkeep.analysis_classes import classify

PERIOD: Final = timedelta(minutes=10)


@agent("classes", every=PERIOD, title="Classifies analysis queues by waits and tasks by users")
def run() -> Pass:
    done = classify(timezone.now())
    note = f"{plural(done.queues, 'queue')}, {plural(done.users, 'user')}, {plural(done.tasks, 'task')}; {done.hurried} hurried"
    return Pass(done.hurried, note)
