"""Parameters of what watches over tasks and jobs: time-outs, relief of queues, pauses."""

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
_mover = partial(Parameter, JEDI, "mover")
_jumbo = partial(Parameter, JEDI, "jumbo_dog", type=INT)

WATCHDOG_PARAMETERS: Final = (
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQNR_RATIO",
        FLOAT,
        3.0,
        "",
        "a queue is relieved above this many queued jobs for each running one of a share",
    ),
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQUEUE_FRAC",
        FLOAT,
        0.3,
        "fraction",
        "a queue is relieved only if it has more than this fraction of the share's queued jobs",
        most=1,
    ),
    _rebroker(
        "FAST_REBRO_THRESHOLD_NQUEUE",
        INT,
        None,
        "jobs",
        "a queue is relieved only if it has more queued jobs of the share; none: never",
        ("share",),
    ),
    _rebroker(
        "ANALY_TIMEOUT",
        FLOAT,
        12.0,
        "h",
        "analysis jobs that have not started after this time are made elsewhere",
        ("working_group",),
    ),
    _timeout("TIMEOUT_defined", FLOAT, 4.0, "h", "maximum time of a job in the state defined"),
    _timeout("TIMEOUT_holding", FLOAT, 48.0, "h", "maximum time of a job in the state holding"),
    _watcher("HEARTBEAT_TIMEOUT", FLOAT, 2.0, "h", "maximum time between heartbeats of a running job", ("workflow",)),
    _dog(
        "PENDING_TIMEOUT",
        FLOAT,
        168.0,
        "h",
        "a task that can make no progress for this long becomes exhausted",
        ("label",),
    ),
    _dog(
        "MAX_JOB_FAILURE_RATE_TO_PAUSE",
        FLOAT,
        None,
        "fraction",
        "from this fraction of failed jobs a task is paused; none or 0: never",
        ("label", "queue"),
        most=1,
    ),
    _dog(
        "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE",
        FLOAT,
        None,
        "fraction",
        "from this fraction of lost CPU work a task is paused; none or 0: never",
        ("label", "queue"),
        most=1,
        also=("MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE",),
    ),
    _dog("MIN_JOBS_TO_PAUSE", INT, 1000, "jobs", "a task with fewer jobs is never paused for failures", ("label",)),
    _dog(
        "MIN_REMAINING_JOBS_TO_PAUSE",
        INT,
        100,
        "jobs",
        "a task with fewer jobs left is never paused for failures",
        ("label",),
    ),
    _dog(
        "BOOST_DONE_PERCENT",
        FLOAT,
        95.0,
        "%",
        "from this percentage of files done, the last jobs of a task go first",
        most=100,
    ),
    _dog("BOOST_JOBS_BELOW", INT, 100, "jobs", "with fewer jobs left than this, the last jobs of a task go first"),
    _volumes(
        "USER_PRESTAGE_LIMIT",
        FLOAT,
        1024.0,
        "GB",
        "maximum volume staged from tape for one user at a time",
        also=("PRESTAGE_LIMIT",),
    ),
    _volumes("USER_TRANSFER_LIMIT", FLOAT, 1024.0, "GB", "maximum volume in transfer for one user at a time"),
    _output("OUTPUT_CONTAINER_LIFETIME", FLOAT, 14.0, "days", "lifetime of user outputs"),
    _withholder(
        "LIMIT_IOINTENSITY",
        FLOAT,
        999999.0,
        "kB/s",
        "from this I/O intensity, tasks are held back from busy queues",
        ("label",),
        least=100,
    ),
    _withholder(
        "LIMIT_PRIORITY",
        INT,
        -999999,
        "priority",
        "tasks below this priority are held back from busy queues",
        ("label",),
        least=None,
    ),
    _filler("MAX_PREASSIGNED_TASKS", INT, 3, "tasks", "maximum number of tasks sent to an empty queue", ("label",)),
    _filler(
        "MIN_FILES_READY",
        INT,
        50,
        "files",
        "minimum number of ready files of a task sent to an empty queue; full chains need fewer",
        ("label", "full_chain"),
        special=(("FC", 10),),
    ),
    _filler(
        "MIN_FILES_REMAINING",
        INT,
        100,
        "files",
        "minimum number of files left in a task sent to an empty queue",
        ("label",),
    ),
    _jumbo(
        "JUMBO_MAX_TASKS", default=1, unit="tasks", meaning="maximum number of tasks that have jumbo jobs at a time"
    ),
    _jumbo(
        "JUMBO_MIN_EVENTS_DISABLE",
        default=100_000,
        unit="events",
        meaning="a task with fewer events left gets no more jumbo jobs",
    ),
    _jumbo(
        "JUMBO_MIN_EVENTS_ENABLE",
        default=None,
        unit="events",
        meaning="a task with more events left may get jumbo jobs",
        default_words="10 x JUMBO_MIN_EVENTS_DISABLE",
    ),
    _jumbo(
        "JUMBO_MAX_EVENTS",
        default=None,
        unit="events",
        meaning="from so many events left in all tasks with jumbo jobs, no further task gets them",
        default_words="JUMBO_MAX_TASKS x JUMBO_MIN_EVENTS_ENABLE / 2",
    ),
    _jumbo(
        "JUMBO_PER_TASK", default=1, unit="jobs", meaning="jumbo jobs of a task for which they are switched on", least=1
    ),
    _jumbo("JUMBO_PER_SITE", default=1, unit="jobs", meaning="of these, jumbo jobs at one queue", least=1),
    _jumbo(
        "JUMBO_MAX_CURR_PRIO",
        default=500,
        unit="priority",
        meaning="only tasks of a lower current priority get jumbo jobs",
        least=None,
    ),
    _jumbo(
        "JUMBO_PROG_TO_BOOST",
        default=95,
        unit="%",
        meaning="above this percentage of events processed, a task with jumbo jobs gets priority 900",
        most=100,
    ),
    _jumbo(
        "JUMBO_MAX_FILES_TO_BOOST", default=500, unit="files", meaning="the same only with fewer files left than this"
    ),
    _jumbo(
        "JUMBO_PRIO_DISABLED",
        default=500,
        unit="priority",
        meaning="minimum current priority of a task whose jumbo jobs were switched off",
        least=None,
    ),
    _mover(
        "LINK_TRANSFERS",
        INT,
        4,
        "files",
        "files copied at a time over a link (source:destination, endpoints)",
        ("link",),
        least=1,
    ),
    _mover("LINK_RATE", FLOAT, 0.0, "MB/s", "rate of a link (source:destination, endpoints); 0: unlimited", ("link",)),
    _mover("TAPE_DRIVES", INT, 2, "files", "files read at a time from a tape endpoint", ("endpoint",), least=1),
    _mover("TAPE_LATENCY", FLOAT, 30.0, "s", "time before the first byte of a file comes from tape", ("endpoint",)),
    _mover("TRANSFER_ATTEMPTS", INT, 5, "attempts", "a transfer that failed so often is not tried again", least=1),
    _mover("TRANSFER_RETRY", FLOAT, 60.0, "s", "wait before a failed transfer is tried again, doubled each time"),
    _mover("TURN_VOLUME", FLOAT, 512.0, "MB", "maximum volume that one turn of the mover copies", least=1),
)
