"""The words of this site, each defined once. The help page shows them, and `manage.py map` writes them to `docs/glossary.md`."""

from __future__ import annotations

from typing import Final, NamedTuple


class Term(NamedTuple):
    word: str
    meaning: str

    @property
    def slug(self) -> str:
        return self.word.lower().replace(" ", "-")


GLOSSARY: Final = (
    Term(
        "Consumer",
        "A job of event service: it takes event ranges of an input until none is left, and several may work on one "
        "input. A merge job makes the outputs of what they have done.",
    ),
    Term(
        "Dataset",
        "A list of files under one name. A task reads datasets and makes new ones; a container is a dataset whose "
        "members are datasets.",
    ),
    Term(
        "Event range",
        "A few neighbouring events of a file that event service hands out as one piece of work. What is done of it "
        "stays done when its job is lost. A task has event service with nEventsPerWorker.",
    ),
    Term(
        "File record",
        "The record that one task has of one file, or of one slice of its events: whether it waits, is in a job, or "
        "is processed, and how many attempts it has left.",
    ),
    Term(
        "Gate",
        "One condition that a task or a job has to pass before it goes on. The tab Why shows the gates in order; the "
        "first “no” is what the task or job waits for.",
    ),
    Term(
        "Harvester",
        "A service that starts workers at the queues of one or several sites and reports their states to this server.",
    ),
    Term(
        "Job",
        "One run of a task's program on some of its input, at one queue. A failed job is not run again: its files go "
        "into another job while they have attempts left.",
    ),
    Term(
        "Jumbo job",
        "A large job of event service that takes event ranges from many inputs of a task, at queues kept for such jobs.",
    ),
    Term(
        "Nucleus",
        "A site whose storage gathers the outputs of a task, wherever its jobs run. Production tasks that need one "
        "get it before their jobs are made.",
    ),
    Term(
        "Pilot",
        "A program on a worker node that asks this server for a job, copies its input, runs it within its limits, "
        "stores the outputs and reports.",
    ),
    Term(
        "Queue",
        "One kind of slots at a site, with limits of memory, time and disk, and with a status (PanDA queue). Brokers "
        "send jobs to queues. A work queue is something else.",
    ),
    Term(
        "Retry rule",
        "A rule on what follows a certain error: more memory, more CPU time, smaller jobs, a limit on attempts, or no "
        "further attempt.",
    ),
    Term(
        "Scout",
        "One of the first jobs of a task. What scouts measure replaces what was declared, and a task whose scouts "
        "fail gets no further jobs.",
    ),
    Term(
        "Share",
        "A part of the computing power that is promised to one kind of work, in per cent of the share above it. "
        "Pilots get jobs of the share that is furthest below its target. Where a site has no tree of shares, the shares of "
        "work queues count.",
    ),
    Term(
        "Site",
        "A place with computing queues and storage.",
    ),
    Term(
        "Task",
        "What a user submits: which data to read, which program to run on it, and what to write. It is split into "
        "jobs and is done when all of its input is processed.",
    ),
    Term(
        "Verdict",
        "What a broker decided for a task at one time: the queues that it chose, and for every other queue the first "
        "reason against it. Verdicts are kept.",
    ),
    Term(
        "Work queue",
        "A group of tasks for which jobs are made and throttled together. The criteria of the work queues decide to "
        "which one a task belongs. A partition is a work queue made of several, which are throttled as one; a stretchable "
        "one gets first what others leave of their shares.",
    ),
    Term(
        "Worker",
        "A batch job, started by a harvester or by the local service, in which a pilot runs.",
    ),
)
