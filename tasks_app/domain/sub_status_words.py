"""What the sub-statuses of jobs of event service mean, for people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tasks_app.domain.range_jobs import TOO_LONG

WORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "es_merge": "all ranges of its files are decided, and a merge job follows",
        "es_retry": "another job goes on with its ranges",
        "es_wait": "it waits for other jobs of its jobset",
        "es_unused": "nothing was left for it to process",
        "es_inaction": "it processed nothing, and others go on",
        "es_noevent": "it processed nothing, and another job follows",
        "es_badstatus": "it ended before it began",
        "es_killed": "a job of its jobset was killed",
        "es_aborted": "its jobset failed before it ended",
        "es_ass_failed": "its jobset failed, so what it had processed is not merged",
        "es_merge_failed": "the merge job failed",
        "es_heartbeat": "nothing more was heard of it",
        "es_preempted": "its slot was taken away",
        TOO_LONG: "it ran for too long, and another job goes on",
        "partial": "what was processed is merged, the rest was given up",
        "pilot_failed": "its pilot said that it failed",
        "pilot_killed": "its pilot was told to end",
        "pilot_noevents": "its pilot got no range",
        "fg_done": "all events of its file are processed",
        "fg_partial": "some events of its file are processed, another job follows for the others",
        "fg_stumble": "it processed no event",
        "jc_unlock": "another copy of the job came first",
    }
)
"""By the word that the column holds; others speak for themselves."""
