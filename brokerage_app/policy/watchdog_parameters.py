"""Parameters of what watches over tasks and jobs: time-outs, relief of queues, pauses, jumbo jobs."""

from __future__ import annotations

from functools import partial
from typing import Final

from brokerage_app.policy.parameter import JEDI, PANDA, Parameter, Type

INT, FLOAT = Type.INT, Type.FLOAT

_rebroker = partial(Parameter, PANDA, "rebroker")
_timeout = partial(Parameter, PANDA, "job_timeout")
_watcher = partial(Parameter, PANDA, "watcher")
_dog = partial(Parameter, JEDI, "watchdog")
_volumes = partial(Parameter, JEDI, "anal_watchdog")
_output = partial(Parameter, JEDI, "user_output")
_withholder = partial(Parameter, JEDI, "task_withholder")
_filler = partial(Parameter, JEDI, "queue_filler")
_jumbo = partial(Parameter, JEDI, "jumbo_dog")

WATCHDOG_PARAMETERS: Final = (
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQNR_RATIO",
        FLOAT,
        3.0,
        "",
        "queued for each running job of a share above which a queue is relieved",
    ),
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQUEUE_FRAC",
        FLOAT,
        0.3,
        "fraction",
        "and its part of all queued jobs of the share",
        most=1,
    ),
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQUEUE",
        INT,
        None,
        "jobs",
        "and its queued jobs; none: nothing is done for the share",
        ("share",),
    ),
    _rebroker(
        "ANALY_TIMEOUT",
        FLOAT,
        12.0,
        "h",
        "jobs of analysis that have not started are made elsewhere",
        ("working_group",),
    ),
    _timeout("TIMEOUT_defined", FLOAT, 4.0, "h", "longest time that a job is defined"),
    _timeout("TIMEOUT_holding", FLOAT, 48.0, "h", "longest time that a job is holding"),
    _watcher("HEARTBEAT_TIMEOUT", FLOAT, 2.0, "h", "longest silence of a running job", ("workflow",)),
    _dog("PENDING_TIMEOUT", FLOAT, 168.0, "h", "a task that can do nothing for so long is exhausted", ("label",)),
    _dog(
        "MAX_JOB_FAILURE_RATE_TO_PAUSE",
        FLOAT,
        None,
        "fraction",
        "part of a task's jobs that fail from which it is paused; none or 0 is never",
        ("label", "queue"),
        most=1,
    ),
    _dog(
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE",
        FLOAT,
        None,
        "fraction",
        "the same by the CPU work that is lost",
        ("label", "queue"),
        most=1,
        also=("MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE",),
    ),
    _dog("MIN_JOBS_TO_PAUSE", INT, 1000, "jobs", "jobs that a task must have to be paused", ("label",)),
    _dog("MIN_REMAINING_JOBS_TO_PAUSE", INT, 100, "jobs", "jobs that must remain", ("label",)),
    _dog("BOOST_DONE_PERCENT", FLOAT, 95.0, "%", "part of the files done from which a task is hurried", most=100),
    _dog("BOOST_JOBS_BELOW", INT, 100, "jobs", "jobs to do below which a task is hurried"),
    _volumes(
        "USER_PRESTAGE_LIMIT",
        FLOAT,
        1024.0,
        "GB",
        "volume that is staged from tape for one user at a time",
        also=("PRESTAGE_LIMIT",),
    ),
    _volumes("USER_TRANSFER_LIMIT", FLOAT, 1024.0, "GB", "volume that is transferred for one user at a time"),
    _output("OUTPUT_CONTAINER_LIFETIME", FLOAT, 14.0, "days", "outputs of users are kept so long"),
    _withholder(
        "LIMIT_IOINTENSITY",
        FLOAT,
        999999.0,
        "kB/s",
        "tasks from this I/O intensity are held back from busy queues",
        ("label",),
        least=100,
    ),
    _withholder("LIMIT_PRIORITY", INT, -999999, "priority", "tasks of lower priority are", ("label",), least=None),
    _filler("MAX_PREASSIGNED_TASKS", INT, 3, "tasks", "tasks that are sent to an empty queue", ("label",)),
    _filler(
        "MIN_FILES_READY",
        INT,
        50,
        "files",
        "files that such a task has ready; full chains need fewer",
        ("label", "full_chain"),
        special=(("FC", 10),),
    ),
    _filler("MIN_FILES_REMAINING", INT, 100, "files", "files that such a task has to do", ("label",)),
    _jumbo("JUMBO_MAX_TASKS", INT, 1, "tasks", "tasks that may have jumbo jobs at a time"),
    _jumbo("JUMBO_MIN_EVENTS_DISABLE", INT, 100000, "events", "a task with fewer events to do loses its jumbo jobs"),
    _jumbo(
        "JUMBO_MIN_EVENTS_ENABLE",
        INT,
        None,
        "events",
        "a task with more events to do may get them",
        derived=lambda read: 10 * read("jumbo_dog", "JUMBO_MIN_EVENTS_DISABLE"),
        default_words="10 × JUMBO_MIN_EVENTS_DISABLE",
    ),
    _jumbo(
        "JUMBO_MAX_EVENTS",
        INT,
        None,
        "events",
        "most events to do of all such tasks",
        derived=lambda read: read("jumbo_dog", "JUMBO_MAX_TASKS") * read("jumbo_dog", "JUMBO_MIN_EVENTS_ENABLE") // 2,
        default_words="JUMBO_MAX_TASKS × JUMBO_MIN_EVENTS_ENABLE / 2",
    ),
    _jumbo("JUMBO_PER_TASK", INT, 1, "jobs", "jumbo jobs of a task"),
    _jumbo("JUMBO_PER_SITE", INT, 1, "jobs", "jumbo jobs of a task at one site"),
    _jumbo("JUMBO_MAX_CURR_PRIO", INT, 500, "priority", "tasks of higher priority get none", least=None),
    _jumbo(
        "JUMBO_PROG_TO_BOOST", FLOAT, 95.0, "%", "part of the events done from which such a task is hurried", most=100
    ),
    _jumbo("JUMBO_MAX_FILES_TO_BOOST", INT, 500, "files", "most files that may remain then"),
    _jumbo("JUMBO_PRIO_DISABLED", INT, 500, "priority", "priority of a task that lost its jumbo jobs", least=None),
)
