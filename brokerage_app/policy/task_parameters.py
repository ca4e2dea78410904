"""Parameters of how tasks are taken in, cut into jobs, measured and tried again."""

from __future__ import annotations

from functools import partial
from typing import Final

from brokerage_app.policy.parameter import JEDI, PANDA, Parameter, Type

INT, FLOAT, BOOL, STR, JSON = Type.INT, Type.FLOAT, Type.BOOL, Type.STR, Type.JSON

_jobgen = partial(Parameter, JEDI, "jobgen")
_proxy = partial(Parameter, JEDI, "dbproxy")
_dispatch = partial(Parameter, PANDA, "jobdispatch")
_server_proxy = partial(Parameter, PANDA, "dbproxy")
_refiner = partial(Parameter, JEDI, "taskrefiner")
_setup = partial(Parameter, JEDI, "task_setup")
_retry = partial(Parameter, JEDI, "retry_task")

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

TASK_PARAMETERS: Final = (*_GENERATION, *_SCOUTS, *_RETRIES)
