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
    _nucleus("INPUT_SIZE_THRESHOLD", FLOAT, 1.0, "GB", "inputs larger than this must be partly at the nucleus"),
    _nucleus(
        "INPUT_SIZE_FRACTION", FLOAT, 10.0, "%", "fraction of the input size that must be at the nucleus", most=100
    ),
    _nucleus(
        "INPUT_NUM_THRESHOLD", INT, 100, "files", "inputs with more files than this must be partly at the nucleus"
    ),
    _nucleus(
        "INPUT_NUM_FRACTION", FLOAT, 10.0, "%", "fraction of the input files that must be at the nucleus", most=100
    ),
    _nucleus(
        "MIN_IO_INTENSITY_WITH_LOCAL_DATA",
        FLOAT,
        200.0,
        "kB/s",
        "up to this I/O intensity the input may be elsewhere; above it, the part that is at the nucleus counts in the weight",
    ),
    _nucleus(
        "MIN_INPUT_SIZE_WITH_LOCAL_DATA", FLOAT, 10000.0, "GB", "up to this size the input need not be at the nucleus"
    ),
    _nucleus(
        "MAX_TASK_PRIO_WITH_LOCAL_DATA",
        INT,
        800,
        "priority",
        "at this priority and above, the input need not be at the nucleus",
        least=None,
    ),
    _nucleus(
        "DATA_LOCATION_CHECK_PERIOD",
        FLOAT,
        7.0,
        "days",
        "a task that has waited this long may go to a nucleus without its input",
    ),
    _nucleus("NQUEUED_NUC_CAP", INT, 2000, "files", "maximum number of files in transfer to a nucleus"),
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
        choices=("production", "none"),
        default_words="production for managed and test of atlas, none for others",
    ),
)

_JOB_BROKERAGE = (
    _broker(
        "NW_ACTIVE", BOOL, True, "", "the network counts in the weight of a queue, and express tasks need a fast link"
    ),
    _broker(
        "NW_QUEUE_IMPORTANCE",
        FLOAT,
        0.5,
        "fraction",
        "how much the queued files count in the weight of a link; the rest is its throughput",
        most=1,
    ),
    _broker("NW_THRESHOLD", FLOAT, 1.7, "", "express tasks need this network weight, times NW_WEIGHT_MULTIPLIER"),
    _broker("NW_WEIGHT_MULTIPLIER", FLOAT, 1.0, "", "factor on the network weight"),
    _broker(
        "NQUEUED_SAT_CAP",
        INT,
        150,
        "files",
        "maximum number of files queued on the link from a queue to the nucleus",
        least=1,
    ),
    _broker(
        "NQUEUED_NUC_CAP_FOR_JOBS",
        INT,
        10000,
        "files",
        "maximum number of files in transfer to the nucleus; above it no jobs are made",
    ),
    _broker(
        "IO_INTENSITY_CUTOFF",
        FLOAT,
        200.0,
        "kB/s",
        "above this I/O intensity only little input may be missing at a queue",
    ),
    _broker(
        "SIZE_CUTOFF_TO_MOVE_INPUT",
        FLOAT,
        10.0,
        "GB",
        "input that may be missing at a queue, above IO_INTENSITY_CUTOFF",
    ),
    _broker(
        "NUM_CUTOFF_TO_MOVE_INPUT", INT, 100, "files", "files that may be missing at a queue, above IO_INTENSITY_CUTOFF"
    ),
    _broker(
        "MAX_DISKIO_DEFAULT",
        FLOAT,
        None,
        "kB/s per core",
        "disk I/O limit of queues that state none; none: no limit",
    ),
    _broker("STORAGE_MIN_FREE_SIZE", FLOAT, 200.0, "GB", "free space that a storage element needs"),
    _broker(
        "MAX_PRIO_TO_BOOTSTRAP",
        INT,
        150,
        "priority",
        "up to this priority, empty queues with slots get a first few jobs",
        least=None,
    ),
    _broker("NQUEUELIMITSITE", INT, 20, "jobs", "number of queued jobs that any queue may have", ("share",)),
    _broker("MIN_WEIGHT", FLOAT, 0.0, "", "minimum weight of a queue; 0: no minimum", ("label", "share")),
    _broker(
        "MAX_MISSING_INPUT_FILES",
        INT,
        10,
        "files",
        "a replica that lacks no more than this many files counts as complete",
    ),
    _broker(
        "MIN_INPUT_COMPLETENESS",
        FLOAT,
        90.0,
        "%",
        "a replica with at least this part of its files counts as complete",
        most=100,
    ),
    Parameter(
        JEDI,
        "brokerage",
        "JOB_BROKER",
        STR,
        None,
        "",
        "which broker decides on jobs of a label: production, analysis or generic; if unset, the broker of the VO",
        ("label",),
        choices=("production", "analysis", "generic"),
    ),
    _core(
        "WORK_SHORTAGE",
        BOOL,
        False,
        "",
        "there is less work than slots: queues without a pledge, or above it, are skipped",
    ),
)

_ANALYSIS_BROKERAGE = (
    _analysis("TW_DONE_JOB_STAT", FLOAT, 6.0, "h", "period over which ended jobs are counted"),
    _analysis("MIN_BAD_JOBS_TO_SKIP_PQ", INT, 5, "jobs", "number of failed and closed jobs that any queue may have"),
    _analysis(
        "BASE_QUEUE_LENGTH_PER_PQ",
        FLOAT,
        100.0,
        "jobs",
        "a queue with fewer queued jobs than this accepts jobs of all users",
    ),
    _analysis(
        "BASE_EXPECTED_WAIT_HOUR_ON_PQ",
        FLOAT,
        8.0,
        "h",
        "a queue whose queued jobs start sooner than this accepts jobs of all users",
    ),
    _analysis(
        "BASE_DEFAULT_QUEUE_LENGTH_PER_PQ_USER",
        FLOAT,
        5.0,
        "jobs",
        "number of queued jobs that any user may have at a queue",
    ),
    _analysis(
        "BASE_QUEUE_RATIO_ON_PQ",
        FLOAT,
        0.05,
        "fraction",
        "limit on queued jobs of a user for each running job of the queue",
    ),
    _analysis("STATIC_MAX_QUEUE_RUNNING_RATIO", FLOAT, 2.0, "", "limit on queued jobs of a queue for each running one"),
    _analysis(
        "MAX_EXPECTED_WAIT_HOUR", FLOAT, 12.0, "h", "limit on queued jobs of a queue: as many as it starts in this time"
    ),
    _analysis(
        "MAX_MISSING_INPUT_FILES",
        INT,
        10,
        "files",
        "a replica that lacks no more than this many files counts as complete",
    ),
    _analysis(
        "MIN_INPUT_COMPLETENESS",
        FLOAT,
        90.0,
        "%",
        "a replica with at least this part of its files counts as complete",
        most=100,
    ),
    _analysis("STORAGE_MIN_FREE_SIZE_OUTPUT", FLOAT, 200.0, "GB", "free space that the storage of outputs needs"),
    _analysis(
        "IO_INTENSITY_CUTOFF_USER",
        FLOAT,
        None,
        "kB/s",
        "up to this I/O intensity, input may be moved; none: the rule is off",
    ),
    _analysis(
        "DATA_CHECK_TIMEOUT_USER",
        FLOAT,
        None,
        "h",
        "the input of a task without jobs for this long may be moved; none: the rule is off",
    ),
    _analysis("OVERLOAD_MIN_QUEUE", INT, 20, "jobs", "up to this many queued jobs, no queue counts as overloaded"),
    _analysis(
        "OVERLOAD_RATIO_OFFSET",
        FLOAT,
        1.2,
        "",
        "a queue with this many times the mean ratio of queued to running jobs is overloaded",
    ),
    _analysis("USER_DISK_QUOTA", FLOAT, None, "GB", "limit on the size of all datasets of one user; none: no limit"),
    _analysis(
        "BASE_WEIGHT",
        STR,
        "original",
        "",
        "weight of a queue: original (jobs that run and wait), new or refined (the user's room and classes)",
        choices=("original", "new", "refined"),
    ),
    _caps(
        "CAP_RUNNING_USER_JOBS",
        INT,
        None,
        "jobs",
        "limit on running jobs of one user; twice as many may be queued; none: no limit",
    ),
    _caps("CAP_RUNNING_USER_CORES", INT, None, "cores", "limit on cores in use by one user; none: no limit"),
    _caps("CAP_RUNNING_GROUP_JOBS", INT, None, "jobs", "limit on running jobs of one working group; none: no limit"),
    _caps("CAP_RUNNING_GROUP_CORES", INT, None, "cores", "limit on cores in use by one working group; none: no limit"),
    _classes(
        "USER_USAGE_THRESHOLD_A", FLOAT, 1000.0, "slots", "up to this many slots in use, a user's tasks are of class A"
    ),
    _classes(
        "USER_USAGE_THRESHOLD_B", FLOAT, 8000.0, "slots", "up to this many slots in use, a user's tasks are of class B"
    ),
    _classes(
        "PROGRESS_TO_BOOST_A", FLOAT, 90.0, "%", "from this progress, a task of class A becomes class S", most=100
    ),
    _classes(
        "PROGRESS_TO_BOOST_B", FLOAT, 95.0, "%", "from this progress, a task of class B becomes class S", most=100
    ),
    _classes(
        "MAX_REM_JOBS_TO_BOOST_A", INT, 500, "jobs", "a task of class A becomes class S only with fewer jobs left"
    ),
    _classes(
        "MAX_REM_JOBS_TO_BOOST_B", INT, 200, "jobs", "a task of class B becomes class S only with fewer jobs left"
    ),
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
            "above this many queued jobs for each running one, no more are made",
        ),
        Parameter(
            JEDI,
            component,
            "THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE",
            FLOAT,
            2.0,
            "",
            "takes the place of THROTTLE_THRESHOLD while WORK_SHORTAGE is set",
        ),
        Parameter(
            JEDI,
            component,
            "NQUEUELIMIT",
            INT,
            None,
            "jobs",
            "number of queued jobs that is always allowed; none: four bunches",
            ("queue", "resource"),
        ),
        Parameter(
            JEDI,
            component,
            "NQUEUECAP",
            INT,
            None,
            "jobs",
            "above this many queued jobs, only the most urgent production tasks get more",
            ("queue", "resource"),
        ),
        Parameter(
            JEDI,
            component,
            "NRUNNINGCAP",
            INT,
            None,
            "jobs",
            "above this many running jobs, no more are made",
            ("queue", "resource"),
        ),
    )
)

BROKER_PARAMETERS: Final = (*_TASK_BROKERAGE, *_CHOICE_OF_BROKERS, *_JOB_BROKERAGE, *_ANALYSIS_BROKERAGE, *_THROTTLERS)
