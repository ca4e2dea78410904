"""What a batch of ends has come to so far: who has ended, what their jobs become, and the jobs that follow them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from events_app.consumers.copying import JobCopy, copy_jobs
from events_app.ends import jobset_facts, jobset_lines
from events_app.ends.jobset_facts import AtQueue, Member, Rules
from tasks_app.outcomes.job_outcome import Outcome

ME = "adder"


@dataclass(slots=True)
class Turn:
    """The ends of one transaction. `batch` are all jobs that end in it: they get no lines from each other. `by_line`: those of
    them that a line ends."""

    cursor: psycopg.Cursor[Any]
    batch: Collection[int]
    rules: Mapping[int, Rules]
    queues: Mapping[str, AtQueue]
    awaited: Collection[int] = ()
    by_line: Collection[int] = ()
    ended: set[int] = field(default_factory=set)
    outcomes: list[Outcome] = field(default_factory=list)
    jobs: dict[int, list[int]] = field(default_factory=dict)
    logs: dict[int, Counter[int]] = field(default_factory=dict)
    unused: dict[int, Counter[int]] = field(default_factory=dict)
    partial: dict[int, set[int]] = field(default_factory=dict)

    def members(self, jobset_id: int) -> list[Member]:
        """The jobs of a jobset that have not ended yet."""
        return jobset_facts.members(self.cursor, jobset_id, self.ended)

    def copy(self, task_id: int, copy: JobCopy, reason: str) -> int:
        """Make a job that follows one of these. Returns its number."""
        copied = copy_jobs(self.cursor, [copy], by=ME, reason=reason)
        self.jobs.setdefault(task_id, []).extend(copied.jobs)
        self.logs.setdefault(task_id, Counter()).update(copied.logs)
        return copied.jobs[0]

    def tell(self, task_id: int, jobs: Collection[int], word: str, by_job: int) -> None:
        """Other jobs are to be ended; those of this batch end in their own way."""
        jobset_lines.write(self.cursor, task_id, set(jobs) - set(self.batch), word, by_job)

    def tell_merging(self, task_id: int, jobset_id: int, jobs: Collection[int], word: str, by_job: int) -> None:
        """The same for those that wait for their merge, of a jobset and of `jobs`."""
        jobset_lines.write_for_merging(self.cursor, task_id, jobset_id, jobs, word, by_job, self.batch)
