"""The state machines that the help page draws: rows of states, and what each state means. Moves come from the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tasks_app.domain.states import (
    ASKED_OF_ANY,
    DATASET_MOVES,
    FILE_MOVES,
    JOB_FINAL,
    JOB_MOVES,
    TASK_MOVES,
    TaskStatus,
)
from tasks_app.drawing.diagrams import Gathered, Machine

T = TaskStatus
_WAITING = (T.PENDING, T.PAUSED)

TASK_MEANING: Final[Mapping[str, str]] = {
    "registered": "was submitted; its parameters are read next",
    "staging": "waits for input that comes from tape",
    "staged": "its input has come from tape",
    "topreprocess": "waits for a job that prepares its input",
    "preprocessing": "a job prepares its input",
    "rerefine": "runs again: its parameters are read again",
    "defined": "has its datasets; their files are looked up",
    "assigning": "waits for its nucleus",
    "ready": "has files; jobs are made next",
    "scouting": "its scouts measure what the other jobs need",
    "scouted": "its scouts are done; the other jobs follow at once",
    "running": "has jobs",
    "pending": "waits for what its page shows, and is retried",
    "throttled": "gets no jobs for a while",
    "paused": "gets no jobs until it is resumed",
    "exhausted": "waits for a decision by its owner or a manager",
    "prepared": "nothing is left to do; it gets its final state",
    "finishing": "got the command finish; its last jobs end",
    "passed": "has finished early; it gets its final state",
    "toretry": "got the command retry",
    "toincexec": "got the command to run again with changed parameters",
    "toreassign": "got the command reassign; its jobs end",
    "reassigning": "gets its new site or nucleus",
    "tobroken": "can never run; it is being closed",
    "aborting": "was killed; its last jobs end",
    "toabort": "was killed; it is being closed",
    "done": "all input was processed",
    "finished": "a part of the input was processed",
    "failed": "none of the input was processed",
    "broken": "could never run",
    "aborted": "was killed",
}

_TASK_ROWS = (
    (T.REGISTERED, T.STAGING, T.STAGED),
    (T.TOPREPROCESS, T.PREPROCESSING, T.REREFINE),
    (T.DEFINED, T.ASSIGNING),
    (T.READY, T.SCOUTING, T.SCOUTED, T.RUNNING),
    (T.PENDING, T.PAUSED, T.THROTTLED),
    (T.EXHAUSTED, T.PREPARED),
    (T.TOREASSIGN, T.REASSIGNING, T.TORETRY, T.TOINCEXEC),
    (T.TOBROKEN, T.ABORTING, T.TOABORT, T.FINISHING, T.PASSED),
    (T.BROKEN, T.ABORTED, T.FAILED, T.FINISHED, T.DONE),
)
_ACTIVE = frozenset(s for s, nexts in TASK_MOVES.items() if nexts >= ASKED_OF_ANY - {s})

TASKS: Final = Machine(
    "States of tasks",
    _TASK_ROWS,
    TASK_MOVES,
    (
        Gathered("any active state", _ACTIVE, ASKED_OF_ANY, 6),
        Gathered(
            "the state before",
            _WAITING,
            frozenset(n for s in _WAITING for n in TASK_MOVES[s]) - ASKED_OF_ANY,
            3,
            from_box=False,
        ),
    ),
)

JOB_MEANING: Final[Mapping[str, str]] = {
    "pending": "waits for its input or its library",
    "waiting": "waits for other jobs",
    "defined": "was made",
    "assigned": "has a site; its input is being transferred",
    "activated": "can be fetched by a pilot",
    "throttled": "is throttled",
    "sent": "was fetched by a pilot",
    "starting": "is being prepared by its pilot",
    "running": "runs",
    "holding": "has ended; its report is being processed",
    "transferring": "its outputs are being transferred",
    "merging": "its outputs wait to be merged",
    "finished": "ended well",
    "failed": "ended badly",
    "cancelled": "was killed by a person",
    "closed": "was ended by the system; its files go into another job",
}
JOBS: Final = Machine(
    "States of jobs",
    (
        ("pending", "waiting", "defined"),
        ("assigned", "activated", "throttled"),
        ("sent", "starting", "running"),
        ("holding", "transferring", "merging"),
        ("finished", "failed", "cancelled", "closed"),
    ),
    JOB_MOVES,
    (Gathered("any open state", frozenset(JOB_MOVES) - JOB_FINAL, JOB_FINAL, 3),),
)

DATASET_MEANING: Final[Mapping[str, str]] = {
    "registered": "is named in the task's parameters",
    "defined": "has to be looked up (input) or made (output)",
    "toupdate": "has to be looked up again",
    "pending": "does not exist yet",
    "ready": "is in use",
    "running": "is being filled",
    "prepared": "is being closed",
    "done": "all its files were processed (input) or made (output)",
    "finished": "some of its files were processed (input) or made (output)",
    "failed": "none of its files was processed (input) or made (output)",
    "removed": "is no longer named by the task",
    "broken": "can never be read",
}
_DATASET_ROWS = (
    ("registered", "defined", "toupdate"),
    ("pending", "ready"),
    ("done", "finished", "failed"),
    ("removed", "broken"),
)
INPUT_DATASETS: Final = Machine("States of datasets that a task reads", _DATASET_ROWS, DATASET_MOVES["input"])
OUTPUT_DATASETS: Final = Machine(
    "States of datasets that a task makes",
    (("registered", "defined"), ("ready", "running", "prepared"), ("done", "finished", "failed")),
    DATASET_MOVES["output"],
)

FILE_MEANING: Final[Mapping[str, str]] = {
    "defined": "will be written by a job",
    "staging": "comes from tape",
    "pending": "waits for other files with which it is used",
    "ready": "can be used; with no attempts left it counts as failed",
    "picked": "is being given to a job",
    "running": "is used by a job",
    "finished": "was processed (input) or made (output)",
    "partial": "was processed but for events that were given up",
    "failed": "was not made",
    "cancelled": "was not made because its job was ended",
    "nooutput": "was not made and is not needed",
    "notmerged": "could not be merged",
    "lost": "has been lost",
    "missing": "is not at its expected location",
    "removed": "was taken out of the input by a command",
}
INPUT_FILES: Final = Machine(
    "States of files that a task reads",
    (("staging", "pending"), ("ready", "lost", "missing"), ("picked", "running"), ("finished", "partial", "removed")),
    FILE_MOVES["input"],
)
OUTPUT_FILES: Final = Machine(
    "States of files that a task makes",
    (
        ("defined",),
        ("ready", "picked", "running"),
        ("finished", "lost"),
        ("failed", "cancelled", "nooutput", "notmerged"),
    ),
    FILE_MOVES["output"],
)


class Chapter(NamedTuple):
    """One machine of the page: a short name for its address, the machine, the meanings of its states, the kind of chips."""

    slug: str
    machine: Machine
    meaning: Mapping[str, str]
    kind: str = ""


CHAPTERS: Final = (
    Chapter("tasks", TASKS, TASK_MEANING, "task"),
    Chapter("jobs", JOBS, JOB_MEANING),
    Chapter("input-datasets", INPUT_DATASETS, DATASET_MEANING),
    Chapter("output-datasets", OUTPUT_DATASETS, DATASET_MEANING),
    Chapter("input-files", INPUT_FILES, FILE_MEANING),
    Chapter("output-files", OUTPUT_FILES, FILE_MEANING),
)
