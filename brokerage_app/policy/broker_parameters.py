"""Parameters of the choice of nuclei and queues, and of the throttle."""

from __future__ import annotations

from functools import partial
from typing import Final

from brokerage_app.policy.parameter import JEDI, PANDA, Parameter, Type

INT, FLOAT, BOOL, STR = Type.INT, Type.FLOAT, Type.BOOL, Type.STR

_nucleus = partial(Parameter, JEDI, "taskbrokerage")
_broker = partial(Parameter, JEDI, "jobbroker")
_choice = partial(Parameter, JEDI, "brokerage")
_core = partial(Parameter, JEDI, "core")
_analysis = partial(Parameter, JEDI, "anal_jobbroker")
_caps = partial(Parameter, PANDA, "prio_mgr")
_classes = partial(Parameter, PANDA, "analy_eval")

_TASK_BROKERAGE = (
    _nucleus("DISK_THRESHOLD", FLOAT, 100.0, "TB", "free space that must remain at a nucleus", ("share",)),
    _nucleus("FREE_DISK_CUTOFF", FLOAT, 1000.0, "TB", "cap of the free space in the weight of a nucleus"),
    _nucleus("INPUT_SIZE_THRESHOLD", FLOAT, 1.0, "GB", "inputs above it must be at the nucleus in part"),
    _nucleus("INPUT_SIZE_FRACTION", FLOAT, 10.0, "%", "least part of the size of the input at the nucleus", most=100),
    _nucleus("INPUT_NUM_THRESHOLD", INT, 100, "files", "inputs of more files must be at the nucleus in part"),
    _nucleus("INPUT_NUM_FRACTION", FLOAT, 10.0, "%", "least part of the files of the input at the nucleus", most=100),
    _nucleus(
        "MIN_IO_INTENSITY_WITH_LOCAL_DATA",
        FLOAT,
        200.0,
        "kB/s",
        "from up to this I/O intensity the input need not be at the nucleus; above, the local part of the size is in the weight",
    ),
    _nucleus(
        "MIN_INPUT_SIZE_WITH_LOCAL_DATA", FLOAT, 10000.0, "GB", "up to this size the input need not be at the nucleus"
    ),
    _nucleus(
        "MAX_TASK_PRIO_WITH_LOCAL_DATA",
        INT,
        800,
        "priority",
        "from this priority the input need not be at the nucleus",
        least=None,
    ),
    _nucleus(
        "DATA_LOCATION_CHECK_PERIOD", FLOAT, 7.0, "days", "a task that waited so long may go where its input is not"
    ),
    _nucleus("NQUEUED_NUC_CAP", INT, 2000, "files", "most files that may be on their way to a nucleus"),
    _nucleus(
        "LEGACY_RW",
        BOOL,
        False,
        "",
        "remaining work below 50 HS06 s counts as 1 in the weight of a nucleus, as in today's system, and not as 50",
    ),
)

_CHOICE_OF_BROKERS = (
    _choice(
        "TASK_BROKER",
        STR,
        None,
        "",
        "production: tasks of this label get a nucleus before jobs are made; none: they do not",
        ("label",),
        default_words="production for managed and test of atlas, none for others",
    ),
)

_JOB_BROKERAGE = (
    _broker("NW_ACTIVE", BOOL, True, "", "the network is in the weight of a queue, and express tasks need a fast one"),
    _broker(
        "NW_QUEUE_IMPORTANCE",
        FLOAT,
        0.5,
        "fraction",
        "part of the files queued on a link in its weight; the rest is the throughput's",
        most=1,
    ),
    _broker("NW_THRESHOLD", FLOAT, 1.7, "", "express tasks need this network weight, times NW_WEIGHT_MULTIPLIER"),
    _broker("NW_WEIGHT_MULTIPLIER", FLOAT, 1.0, "", "the network weight is multiplied by it"),
    _broker(
        "NQUEUED_SAT_CAP",
        INT,
        150,
        "files",
        "most files that may wait on the link from a queue to the nucleus",
        least=1,
    ),
    _broker(
        "NQUEUED_NUC_CAP_FOR_JOBS",
        INT,
        10000,
        "files",
        "most files that may be on their way to the nucleus for jobs to be made",
    ),
    _broker("IO_INTENSITY_CUTOFF", FLOAT, 200.0, "kB/s", "above it only little input may be missing at a queue"),
    _broker("SIZE_CUTOFF_TO_MOVE_INPUT", FLOAT, 10.0, "GB", "input of such tasks that may be missing"),
    _broker("NUM_CUTOFF_TO_MOVE_INPUT", INT, 100, "files", "files of such tasks that may be missing"),
    _broker(
        "MAX_DISKIO_DEFAULT",
        FLOAT,
        None,
        "kB/s per core",
        "disk I/O that queues bear which say nothing else; none is any",
    ),
    _broker("STORAGE_MIN_FREE_SIZE", FLOAT, 200.0, "GB", "free space that a storage element needs"),
    _broker(
        "MAX_PRIO_TO_BOOTSTRAP",
        INT,
        150,
        "priority",
        "up to this priority empty queues and their slots count",
        least=None,
    ),
    _broker("NQUEUELIMITSITE", INT, 20, "jobs", "queued jobs that a queue may always have", ("share",)),
    _broker("MIN_WEIGHT", FLOAT, 0.0, "", "least weight of a queue; 0 is any", ("label", "share")),
    _broker("MAX_MISSING_INPUT_FILES", INT, 10, "files", "a replica that lacks so many files counts as complete"),
    _broker("MIN_INPUT_COMPLETENESS", FLOAT, 90.0, "%", "or one with so many of its files", most=100),
    Parameter(
        JEDI,
        "brokerage",
        "JOB_BROKER",
        STR,
        None,
        "",
        "which broker decides on jobs of a label: production, analysis or generic; without it as for the VO",
        ("label",),
    ),
    _core("WORK_SHORTAGE", BOOL, False, "", "there is less work than slots: queues that take no part are left out"),
)

_ANALYSIS_BROKERAGE = (
    _analysis("TW_DONE_JOB_STAT", FLOAT, 6.0, "h", "ended jobs are counted over this time"),
    _analysis("MIN_BAD_JOBS_TO_SKIP_PQ", INT, 5, "jobs", "failed and closed jobs that a queue may always have"),
    _analysis("BASE_QUEUE_LENGTH_PER_PQ", FLOAT, 100.0, "jobs", "a queue with fewer queued jobs takes everybody's"),
    _analysis("BASE_EXPECTED_WAIT_HOUR_ON_PQ", FLOAT, 8.0, "h", "so does one whose queued jobs start sooner"),
    _analysis(
        "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
        FLOAT,
        5.0,
        "jobs",
        "queued jobs that a user may always have at a queue",
    ),
    _analysis(
        "BASE_QUEUE_RATIO_ON_PQ", FLOAT, 0.05, "fraction", "queued jobs of a user for each running job of the queue"
    ),
    _analysis(
        "STATIC_MAX_QUEUE_RUNNING_RATIO", FLOAT, 2.0, "", "queued jobs that a queue can afford for each running one"
    ),
    _analysis("MAX_EXPECTED_WAIT_HOUR", FLOAT, 12.0, "h", "or as many as it starts in so many hours"),
    _analysis("MAX_MISSING_INPUT_FILES", INT, 10, "files", "a replica that lacks so many files counts as complete"),
    _analysis("MIN_INPUT_COMPLETENESS", FLOAT, 90.0, "%", "or one with so many of its files", most=100),
    _analysis("STORAGE_MIN_FREE_SIZE_OUTPUT", FLOAT, 200.0, "GB", "free space that the storage of outputs needs"),
    _analysis(
        "IO_INTENSITY_CUTOFF_USER", FLOAT, None, "kB/s", "up to it input may be moved; none switches the rule off"
    ),
    _analysis(
        "DATA_CHECK_TIMEOUT_USER",
        FLOAT,
        None,
        "h",
        "a task without jobs for so long may have its input moved; none switches the rule off",
    ),
    _analysis("OVERLOAD_MIN_QUEUE", INT, 20, "jobs", "queued jobs up to which no queue is overloaded"),
    _analysis(
        "OVERLOAD_RATIO_OFFSET",
        FLOAT,
        1.2,
        "",
        "queued for each running job above the mean from which a queue is overloaded",
    ),
    _analysis("USER_DISK_QUOTA", FLOAT, None, "GB", "size of all datasets of one user; none is any"),
    _analysis(
        "BASE_WEIGHT",
        STR,
        "original",
        "",
        "weight of a queue: original (jobs that run and wait), new or refined (the user's room and classes)",
    ),
    _caps(
        "CAP_RUNNING_USER_JOBS",
        INT,
        None,
        "jobs",
        "running jobs of one user; twice as many may be queued; none is any number",
    ),
    _caps("CAP_RUNNING_USER_CORES", INT, None, "cores", "cores in use by one user"),
    _caps("CAP_RUNNING_GROUP_JOBS", INT, None, "jobs", "running jobs of one working group"),
    _caps("CAP_RUNNING_GROUP_CORES", INT, None, "cores", "cores in use by one working group"),
    _classes(
        "USER_USAGE_THRESHOLD_A", FLOAT, 1000.0, "slots", "slots in use up to which a user's tasks are of class A"
    ),
    _classes("USER_USAGE_THRESHOLD_B", FLOAT, 8000.0, "slots", "slots in use up to which they are of class B"),
    _classes("PROGRESS_TO_BOOST_A", FLOAT, 90.0, "%", "progress from which a task of class A is of class S", most=100),
    _classes("PROGRESS_TO_BOOST_B", FLOAT, 95.0, "%", "the same for class B", most=100),
    _classes("MAX_REM_JOBS_TO_BOOST_A", INT, 500, "jobs", "most jobs that may remain then, class A"),
    _classes("MAX_REM_JOBS_TO_BOOST_B", INT, 200, "jobs", "most jobs that may remain then, class B"),
)

THROTTLERS: Final = ("prod_job_throttler", "anal_job_throttler")
"""The first holds for tasks of all labels but user and panda, the second for these."""
_THROTTLERS = tuple(
    row
    for component in THROTTLERS
    for row in (
        Parameter(
            JEDI,
            component,
            "THROTTLE_THRESHOLD",
            FLOAT,
            2.0,
            "",
            "queued for each running job above which no more are made",
        ),
        Parameter(
            JEDI,
            component,
            "THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE",
            FLOAT,
            2.0,
            "",
            "the same while WORK_SHORTAGE holds",
        ),
        Parameter(
            JEDI,
            component,
            "NQUEUELIMIT",
            INT,
            None,
            "jobs",
            "queued jobs that are always allowed; none is four bunches",
            ("queue", "resource"),
        ),
        Parameter(
            JEDI,
            component,
            "NQUEUECAP",
            INT,
            None,
            "jobs",
            "queued jobs above which only the most urgent tasks of production get more",
            ("queue", "resource"),
        ),
        Parameter(
            JEDI,
            component,
            "NRUNNINGCAP",
            INT,
            None,
            "jobs",
            "running jobs above which no more are made",
            ("queue", "resource"),
        ),
    )
)

BROKER_PARAMETERS: Final = (*_TASK_BROKERAGE, *_CHOICE_OF_BROKERS, *_JOB_BROKERAGE, *_ANALYSIS_BROKERAGE, *_THROTTLERS)
