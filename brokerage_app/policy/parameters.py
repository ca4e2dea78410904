"""The parameters that an installation may set in the table of the configuration (gdp_config), each with its default. Pure.

Names, units and defaults are those of the JEDI brokerage document and, where it gives none, of the running system
(brokerage 3, lifecycle 9). A parameter that is not in PARAMETERS is not known and cannot be set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from types import MappingProxyType
from typing import Final

from brokerage_app.policy.parameter import Parameter, Type, UnknownParameterError

INT, FLOAT, BOOL, STR, JSON = Type.INT, Type.FLOAT, Type.BOOL, Type.STR, Type.JSON
JEDI, PANDA = "jedi", "pandaserver"

# Each component belongs to one application.
_nucleus = partial(Parameter, JEDI, "taskbrokerage")
_broker = partial(Parameter, JEDI, "jobbroker")
_choice = partial(Parameter, JEDI, "brokerage")
_core = partial(Parameter, JEDI, "core")
_analysis = partial(Parameter, JEDI, "anal_jobbroker")
_caps = partial(Parameter, PANDA, "prio_mgr")
_classes = partial(Parameter, PANDA, "analy_eval")
_rebroker = partial(Parameter, PANDA, "rebroker")
_timeout = partial(Parameter, PANDA, "job_timeout")
_watcher = partial(Parameter, PANDA, "watcher")
_dog = partial(Parameter, JEDI, "watchdog")
_volumes = partial(Parameter, JEDI, "anal_watchdog")
_output = partial(Parameter, JEDI, "user_output")
_withholder = partial(Parameter, JEDI, "task_withholder")
_filler = partial(Parameter, JEDI, "queue_filler")
_jumbo = partial(Parameter, JEDI, "jumbo_dog")
_jobgen = partial(Parameter, JEDI, "jobgen")
_proxy = partial(Parameter, JEDI, "dbproxy")
_dispatch = partial(Parameter, PANDA, "jobdispatch")
_server_proxy = partial(Parameter, PANDA, "dbproxy")
_refiner = partial(Parameter, JEDI, "taskrefiner")
_setup = partial(Parameter, JEDI, "task_setup")
_retry = partial(Parameter, JEDI, "retry_task")

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

_WATCHDOGS = (
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

_GENERATION = (
    _jobgen("JOB_SUBMISSION", BOOL, True, "", "jobs are made; false stops the VO"),
    _jobgen(
        "NTASKS",
        INT,
        None,
        "tasks",
        "tasks of a queue looked at in one pass; none is the installation's",
        ("queue",),
        least=1,
    ),
    _jobgen(
        "NFILES",
        INT,
        None,
        "files",
        "files of a task read in one pass; none is the installation's",
        ("queue",),
        least=1,
    ),
    _jobgen(
        "GROUPBYATTR",
        STR,
        None,
        "",
        "attribute of tasks by which a queue is served in turns; none is userName",
        ("queue",),
    ),
    _jobgen(
        "MERGE_JOB_MAX_WALLTIME",
        FLOAT,
        None,
        "h",
        "longest run of merge jobs; none is what the queue allows",
        ("label",),
    ),
    _jobgen("BUILD_JOB_MAX_WALLTIME", FLOAT, None, "h", "longest run of build jobs; none is what the queue allows"),
    _jobgen("TYPNFILES", INT, None, "files", "typical number of inputs of a job", ("label", "working_group", "type")),
    _proxy(
        "SUPER_HIGH_PRIO_TASK_RATIO",
        FLOAT,
        30.0,
        "%",
        "turns before which a task of priority from 1500 is served",
        most=100,
    ),
    _proxy(
        "MAX_ACTIVE_TASKS_PER_USER",
        INT,
        None,
        "tasks",
        "most tasks of a user that have not ended; none is any number",
        ("label",),
    ),
    _dispatch("SLOPPY_DISPATCH_RATIO", FLOAT, 10.0, "%", "jobs handed out without regard to shares", most=100),
    _server_proxy(
        "USER_JOB_PRIO_BOOST_DICTS",
        JSON,
        None,
        "",
        "list of objects with name, type (user or group), prio and expire (YYYYMMDD or null)",
    ),
    _refiner(
        "MAX_FILE_RECORDS",
        INT,
        200_000,
        "records",
        "files, or ranges of events, that one input of a task may have; a task with more is refused",
        least=10_000,
    ),
    _refiner(
        "USER_TASKS_MOVE_INPUT", FLOAT, None, "%", "tasks of users, by chance, whose input may be moved", most=100
    ),
    _refiner("USER_TASKS_MAX_CORE_COUNT", INT, 16, "cores", "most cores of a job of a user", least=1),
    _refiner(
        "USER_JOB_TARGET_WALLTIME",
        INT,
        None,
        "h",
        "longest run of jobs of a user; none is what the queue allows",
        least=1,
    ),
    _refiner("OUTDISKCOUNT_ANALY_KB", INT, 500, "kB per MB of input", "output of jobs of users that say nothing else"),
    _refiner(
        "USER_TASKS_MESSAGE_DRIVEN_PERCENT",
        FLOAT,
        None,
        "%",
        "tasks of users, by chance, that are driven by messages",
        most=100,
    ),
    _refiner(
        "USER_TASKS_PUSH_STATUS_CHANGES_PERCENT",
        FLOAT,
        None,
        "%",
        "tasks of users, by chance, that send messages of their status",
        most=100,
    ),
    _refiner("PROD_TASKS_PUSH_STATUS_CHANGES_PERCENT", FLOAT, None, "%", "the same for production", most=100),
    _refiner(
        "AES_EVENTPOOLSIZE",
        INT,
        None,
        "events",
        "events that the pool of the event service shall hold; none: no task is converted",
    ),
    _refiner("AES_MAXPENDING", INT, None, "tasks", "converted tasks that may wait"),
    _refiner("AES_MAXTASKPRIORITY", INT, None, "priority", "highest priority of tasks that are converted", least=None),
    _refiner("AES_MINTASKPRIORITY", INT, None, "priority", "lowest priority of tasks that are converted", least=None),
    _refiner("AES_NESCONSUMERS", INT, 1, "jobs", "jobs that share the events of one input", least=1),
    _refiner("AES_NSITESPERJOB", INT, 1, "sites", "sites that they are spread over", least=1),
    _setup("DATASET_LIFETIME", FLOAT, None, "days", "outputs of a type are kept so long; none is for ever", ("type",)),
)

_SCOUTS = (
    _proxy("SCOUT_RAMCOUNT_RANK", FLOAT, 75.0, "%", "percentile of the memory of scouts", most=100),
    _proxy("SCOUT_RAMCOUNT_MARGIN", FLOAT, 10.0, "%", "what is added to it"),
    _proxy("SCOUT_RAMCOUNT_MIN", INT, None, "MB", "least memory that scouts set"),
    _proxy("SCOUT_CPUTIME_RANK", FLOAT, 95.0, "%", "percentile of the CPU time of scouts", most=100),
    _proxy("SCOUT_DISK_IO_CAP", INT, None, "kB/s", "most disk I/O that scouts set"),
    _proxy(
        "SCOUT_SHORT_EXECTIME",
        FLOAT,
        None,
        "min",
        "scouts that run shorter are short",
        ("label",),
        special=(("user", 4.0), ("panda", 4.0)),
    ),
    _proxy(
        "SCOUT_NUM_SHORT",
        FLOAT,
        None,
        "tenths",
        "so many of ten that are short are too many; none is more than five",
        ("label",),
        most=10,
    ),
    _proxy("SCOUT_THR_SHORT", INT, 1000, "jobs", "when more jobs than this are expected", ("label",)),
    _proxy("SCOUT_CHANGE_SR", BOOL, False, "", "jobs are made larger when scouts are short", ("label",)),
    _proxy(
        "SCOUT_LOW_CPU_EFFICIENCY",
        FLOAT,
        None,
        "%",
        "scouts that use less of their CPUs are inefficient",
        ("label",),
        most=100,
    ),
    _proxy("SCOUT_NUM_CPU_INEFFICIENT", FLOAT, 10.0, "tenths", "so many of ten are too many", ("label",), most=10),
    _proxy("SCOUT_THR_CPU_INEFFICIENT", INT, 0, "jobs", "when more jobs than this are expected", ("label",)),
    _proxy(
        "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED", FLOAT, None, "kB/s", "unless the task reads and writes more", ("label",)
    ),
    _proxy("SCOUT_MEM_LEAK_PER_CORE", FLOAT, None, "kB/s per core", "a leak above it is worth a message", ("label",)),
    _proxy(
        "SCOUT_MIN_OK_RATE_EXHAUSTED",
        FLOAT,
        None,
        "fraction",
        "below this success rate of scouts a task breaks, above it is exhausted",
        ("label",),
        most=1,
    ),
    _proxy(
        "SCOUT_WRONG_CPUTIME_THRESHOLD",
        FLOAT,
        2.0,
        "",
        "CPU time of scouts over the declared one; 0 or less is off",
        least=None,
    ),
    _proxy(
        "RAM_THR_EXAUSTED",
        FLOAT,
        4.0,
        "1000 MB per core",
        "memory that scouts may not exceed unless the task declared more",
    ),
)

_RETRIES = (
    _retry(
        "TASK_MAX_ATTEMPT",
        INT,
        None,
        "attempts",
        "attempts of a task after which it is not tried again; none or 0 is no limit",
        ("label",),
    ),
    _retry(
        "JOB_MAX_ATTEMPT", INT, None, "attempts", "attempts that a file may have; none or 0 is no limit", ("label",)
    ),
    _retry(
        "MAX_JOB_FAILURE_RATE",
        FLOAT,
        None,
        "fraction",
        "part of the jobs that may have failed; none or 0 is no limit",
        ("label",),
        most=1,
    ),
    _retry(
        "MAX_FAILED_HEP_SCORE_RATE",
        FLOAT,
        None,
        "fraction",
        "part of the HS23 hours that may have failed; none or 0 is no limit",
        ("label",),
        most=1,
    ),
    _retry(
        "MAX_FAILED_HEP_SCORE_HOURS",
        FLOAT,
        None,
        "HS23 h",
        "HS23 hours that may have failed; none or 0 is no limit",
        ("label",),
    ),
    _retry(
        "MIN_CPU_EFFICIENCY",
        FLOAT,
        None,
        "%",
        "CPU efficiency that the median job must reach; none or 0 is no limit",
        ("label",),
        most=100,
    ),
)

_UNREAD: Final = frozenset(
    {"NTASKS", "NFILES", "GROUPBYATTR", "TYPNFILES", "SUPER_HIGH_PRIO_TASK_RATIO", "DATASET_LIFETIME"}
)
"""Parameters of the documents that nothing here reads, beside those of jumbo jobs and of the pool of the event service."""


def _marked(parameter: Parameter) -> Parameter:
    unread = parameter.component == "jumbo_dog" or parameter.key in _UNREAD or parameter.key.startswith("AES_")
    return replace(parameter, unread=unread)


PARAMETERS: Final[tuple[Parameter, ...]] = tuple(
    map(
        _marked,
        (
            *_TASK_BROKERAGE,
            *_CHOICE_OF_BROKERS,
            *_JOB_BROKERAGE,
            *_ANALYSIS_BROKERAGE,
            *_THROTTLERS,
            *_WATCHDOGS,
            *_GENERATION,
            *_SCOUTS,
            *_RETRIES,
        ),
    )
)
"""All parameters, in the order in which they are shown."""

COMPONENT_ALIASES: Final[Mapping[str, str]] = MappingProxyType({"JumboWatchDog": "jumbo_dog"})
"""Other names of components, as rows of the running system have them."""

BY_NAME: Final[Mapping[tuple[str, str], Parameter]] = MappingProxyType({(p.component, p.key): p for p in PARAMETERS})
COMPONENTS: Final[Mapping[str, str]] = MappingProxyType({p.component: p.app for p in reversed(PARAMETERS)})
_SPELLINGS: Final[Mapping[str, tuple[tuple[str, Parameter], ...]]] = MappingProxyType(
    {
        component: tuple(
            sorted(
                ((k, p) for p in PARAMETERS if p.component == component for k in (p.key, *p.also)),
                key=lambda x: -len(x[0]),
            )
        )
        for component in COMPONENTS
    }
)
"""For each component its keys in all spellings, the longest first."""


def known(component: str, key: str, suffixes: int = 0) -> Parameter:
    """The parameter of this name. Raises UnknownParameterError, also for more suffixes than it has."""
    found = BY_NAME.get((COMPONENT_ALIASES.get(component, component), key))
    if found is None:
        raise UnknownParameterError(f"there is no parameter {key} of {component}; {nearest(component, key)}")
    if suffixes > len(found.per):
        raise UnknownParameterError(f"{found.name} of {component} takes {len(found.per)} suffixes, not {suffixes}")
    return found


def parse_key(component: str, key: str) -> tuple[Parameter, str] | None:
    """The parameter that a stored key sets, and its suffix as one text; None when it is not known.

    Suffixes may contain blanks and underscores: names of shares and of queues do.
    """
    for spelling, parameter in _SPELLINGS.get(COMPONENT_ALIASES.get(component, component), ()):
        if key == spelling:
            return parameter, ""
        if parameter.per and key.startswith(f"{spelling}_") and len(key) > len(spelling) + 1:
            return parameter, key[len(spelling) + 1 :]
    return None


def nearest(component: str, key: str) -> str:
    """A sentence with the known name that is nearest to a name that is not known."""
    component = COMPONENT_ALIASES.get(component, component)
    elsewhere = sorted({c for c in COMPONENTS if parse_key(c, key) is not None})
    if elsewhere:
        return f"{key} is a parameter of {' and of '.join(elsewhere)}"
    if component not in COMPONENTS:
        near = get_close_matches(component, COMPONENTS, 1, 0.0)
        return f"the component with the nearest name is {near[0]}"
    keys = [p.key for p in PARAMETERS if p.component == component]
    near = get_close_matches(key, keys, 1, 0.6)
    if near:
        return f"the parameter of {component} with the nearest name is {near[0]}"
    anywhere = get_close_matches(key, [p.key for p in PARAMETERS], 1, 0.0)
    other = next(p for p in PARAMETERS if p.key == anywhere[0])
    return f"the parameter with the nearest name is {other.key} of {other.component}"
