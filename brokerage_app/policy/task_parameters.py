"""Parameters of how tasks are taken in, cut into jobs, measured and tried again."""

from __future__ import annotations

from functools import partial
from typing import Final

from brokerage_app.policy.parameter import JEDI, PANDA, Parameter, Type

INT, FLOAT, BOOL, STR, JSON = Type.INT, Type.FLOAT, Type.BOOL, Type.STR, Type.JSON

TURN_ATTRIBUTES: Final = (
    "userName",
    "workingGroup",
    "countryGroup",
    "processingType",
    "campaign",
    "reqID",
    "requestType",
    "transPath",
)
"""Attributes of tasks whose values may take turns in the job generator."""

_jobgen = partial(Parameter, JEDI, "jobgen")
_proxy = partial(Parameter, JEDI, "dbproxy")
_dispatch = partial(Parameter, PANDA, "jobdispatch")
_server_proxy = partial(Parameter, PANDA, "dbproxy")
_refiner = partial(Parameter, JEDI, "taskrefiner")
_setup = partial(Parameter, JEDI, "task_setup")
_retry = partial(Parameter, JEDI, "retry_task")

_GENERATION = (
    _jobgen("JOB_SUBMISSION", BOOL, True, "", "whether jobs are made; false stops job generation for the VO"),
    _jobgen(
        "NTASKS",
        INT,
        None,
        "tasks",
        "most tasks of a work queue or share that one pass handles; none: no limit of its own",
        ("queue",),
        least=1,
    ),
    _jobgen(
        "NFILES",
        INT,
        None,
        "files",
        "most input files of a task of a work queue or share that one pass reads; none: no limit",
        ("queue",),
        least=100,
    ),
    _jobgen(
        "GROUPBYATTR",
        STR,
        None,
        "",
        "task attribute whose values take turns in a work queue or share; none: userName",
        ("queue",),
        choices=TURN_ATTRIBUTES,
    ),
    _jobgen(
        "MERGE_JOB_MAX_WALLTIME",
        FLOAT,
        None,
        "h",
        "maximum walltime of merge jobs; none: the limit of the queue",
        ("label",),
    ),
    _jobgen("BUILD_JOB_MAX_WALLTIME", FLOAT, None, "h", "maximum walltime of build jobs; none: the limit of the queue"),
    _proxy(
        "SUPER_HIGH_PRIO_TASK_RATIO",
        FLOAT,
        30.0,
        "%",
        "for each hundred other tasks of a work queue, so many of priority 1500 or more get a turn before them",
        most=100,
    ),
    _proxy(
        "MAX_ACTIVE_TASKS_PER_USER",
        INT,
        None,
        "tasks",
        "maximum number of open tasks of a user; none: no limit",
        ("label",),
    ),
    _dispatch(
        "SLOPPY_DISPATCH_RATIO", FLOAT, 10.0, "%", "percentage of jobs handed out regardless of shares", most=100
    ),
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
        "maximum number of files or event ranges of one input of a task; a task with more is refused",
        least=10_000,
    ),
    _refiner(
        "USER_TASKS_MOVE_INPUT",
        FLOAT,
        None,
        "%",
        "percentage of user tasks, drawn at random, whose input may be moved",
        most=100,
    ),
    _refiner("USER_TASKS_MAX_CORE_COUNT", INT, 16, "cores", "maximum number of cores of a user job", least=1),
    _refiner(
        "USER_JOB_TARGET_WALLTIME",
        INT,
        None,
        "h",
        "maximum walltime of user jobs; none: the limit of the queue",
        least=1,
    ),
    _refiner(
        "OUTDISKCOUNT_ANALY_KB", INT, 500, "kB per MB of input", "output size of user jobs whose task states none"
    ),
    _refiner(
        "USER_TASKS_PUSH_STATUS_CHANGES_PERCENT",
        FLOAT,
        None,
        "%",
        "percentage of user tasks, drawn at random, that publish each change of status",
        most=100,
    ),
    _refiner(
        "PROD_TASKS_PUSH_STATUS_CHANGES_PERCENT",
        FLOAT,
        None,
        "%",
        "percentage of production tasks, drawn at random, that publish each change of status",
        most=100,
    ),
    _setup(
        "DATASET_LIFETIME",
        FLOAT,
        None,
        "days",
        "lifetime of outputs of a type (output or log) that no other rule ends",
        ("type",),
    ),
)

_SCOUTS = (
    _proxy("SCOUT_RAMCOUNT_RANK", FLOAT, 75.0, "%", "percentile of the memory of scouts", most=100),
    _proxy("SCOUT_RAMCOUNT_MARGIN", FLOAT, 10.0, "%", "margin added to that percentile of the memory"),
    _proxy("SCOUT_RAMCOUNT_MIN", INT, None, "MB", "minimum memory that scouts set"),
    _proxy("SCOUT_CPUTIME_RANK", FLOAT, 95.0, "%", "percentile of the CPU time of scouts", most=100),
    _proxy("SCOUT_DISK_IO_CAP", INT, None, "kB/s", "maximum disk I/O that scouts set"),
    _proxy(
        "SCOUT_SHORT_EXECTIME",
        FLOAT,
        None,
        "min",
        "scouts that run for less than this count as short",
        ("label",),
        special=(("user", 4.0), ("panda", 4.0)),
    ),
    _proxy(
        "SCOUT_NUM_SHORT",
        FLOAT,
        None,
        "tenths",
        "this many short scouts out of ten are too many; none: more than five",
        ("label",),
        most=10,
    ),
    _proxy(
        "SCOUT_THR_SHORT", INT, 1000, "jobs", "short scouts matter only if more jobs than this are expected", ("label",)
    ),
    _proxy("SCOUT_CHANGE_SR", BOOL, False, "", "whether jobs are made larger when scouts are short", ("label",)),
    _proxy(
        "SCOUT_LOW_CPU_EFFICIENCY",
        FLOAT,
        None,
        "%",
        "scouts with a lower CPU efficiency count as inefficient",
        ("label",),
        most=100,
    ),
    _proxy(
        "SCOUT_NUM_CPU_INEFFICIENT",
        FLOAT,
        10.0,
        "tenths",
        "this many inefficient scouts out of ten are too many",
        ("label",),
        most=10,
    ),
    _proxy(
        "SCOUT_THR_CPU_INEFFICIENT",
        INT,
        0,
        "jobs",
        "inefficient scouts matter only if more jobs than this are expected",
        ("label",),
    ),
    _proxy(
        "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED",
        FLOAT,
        None,
        "kB/s",
        "inefficient scouts do not matter above this I/O intensity",
        ("label",),
    ),
    _proxy("SCOUT_MEM_LEAK_PER_CORE", FLOAT, None, "kB/s per core", "a memory leak above this is reported", ("label",)),
    _proxy(
        "SCOUT_MIN_OK_RATE_EXHAUSTED",
        FLOAT,
        None,
        "fraction",
        "below this success rate of its scouts a task becomes broken, above it exhausted",
        ("label",),
        most=1,
    ),
    _proxy(
        "SCOUT_WRONG_CPUTIME_THRESHOLD",
        FLOAT,
        2.0,
        "",
        "maximum ratio of the CPU time of scouts to the declared one; 0 or less: no check",
        least=None,
    ),
    _proxy(
        "RAM_THR_EXAUSTED",
        FLOAT,
        4.0,
        "1000 MB per core",
        "maximum memory of scouts, unless the task declared more",
    ),
)

_RETRIES = (
    _retry(
        "TASK_MAX_ATTEMPT",
        INT,
        None,
        "attempts",
        "maximum number of attempts of a task; none or 0: no limit",
        ("label",),
    ),
    _retry(
        "JOB_MAX_ATTEMPT",
        INT,
        None,
        "attempts",
        "maximum number of attempts of a file; none or 0: no limit",
        ("label",),
    ),
    _retry(
        "MAX_JOB_FAILURE_RATE",
        FLOAT,
        None,
        "fraction",
        "maximum fraction of failed jobs for a retry; none or 0: no limit",
        ("label",),
        most=1,
    ),
    _retry(
        "MAX_FAILED_HEP_SCORE_RATE",
        FLOAT,
        None,
        "fraction",
        "maximum fraction of HS23 hours in failed jobs for a retry; none or 0: no limit",
        ("label",),
        most=1,
    ),
    _retry(
        "MAX_FAILED_HEP_SCORE_HOURS",
        FLOAT,
        None,
        "HS23 h",
        "maximum HS23 hours in failed jobs for a retry; none or 0: no limit",
        ("label",),
    ),
    _retry(
        "MIN_CPU_EFFICIENCY",
        FLOAT,
        None,
        "%",
        "minimum CPU efficiency of the median job for a retry; none or 0: no limit",
        ("label",),
        most=100,
    ),
)

TASK_PARAMETERS: Final = (*_GENERATION, *_SCOUTS, *_RETRIES)
