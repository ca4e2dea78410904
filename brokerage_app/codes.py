"""The refusal codes of brokerage and throttling. Scripts read them: a code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from jedisite.refusals import Fixer, Group, Severity, register


def _code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code


NO_SITE_KNOWN: Final = _code(
    "no_site_known", "No site is known", "state", "expert",
    "Describe at least one site in the admin, or import the site descriptions.", severity="error",
)  # fmt: skip
SITE_OFFLINE: Final = _code(
    "site_offline", "Site offline", "state", "site",
    "Wait until the site is online again, or allow other sites in the task.",
)  # fmt: skip
SITE_BROKEROFF: Final = _code(
    "site_brokeroff", "Brokerage switched off", "state", "shifter",
    "The site finishes what it has and takes nothing new; set it online, or name it as the task's only site.",
)  # fmt: skip
SITE_TEST_ONLY: Final = _code(
    "site_test_only", "Test jobs only", "state", "shifter",
    "The site takes jobs with the label test until it is set online.",
)  # fmt: skip

EXCLUDED: Final = _code(
    "excluded", "Excluded by the task", "policy", "user",
    "Take the site off the task's list of excluded sites.",
)  # fmt: skip
NOT_INCLUDED: Final = _code(
    "not_included", "Not among the task's sites", "policy", "user",
    "Add the site to the task's list of sites, or drop the list.",
)  # fmt: skip
NOT_PREASSIGNED: Final = _code(
    "not_preassigned", "Bound to another site", "policy", "user",
    "The work is bound to one site, for instance to where its data or its libraries are; nothing needs to be done.",
    severity="info",
)  # fmt: skip

TOO_FEW_CORES: Final = _code(
    "too_few_cores", "Not enough cores", "resources", "user",
    "Ask for fewer cores a job, or allow sites with larger slots.", severity="error",
)  # fmt: skip
MULTI_CORE_ONLY: Final = _code(
    "multi_core_only", "Multi-core jobs only", "resources", "user",
    "Ask for more than one core, or allow sites that take single-core jobs.", severity="error",
)  # fmt: skip
LOW_MEMORY: Final = _code(
    "low_memory", "Not enough memory at the site", "resources", "user",
    "Ask for less memory, or allow sites with more memory a slot.", severity="error",
)  # fmt: skip
HIGH_MEMORY: Final = _code(
    "high_memory", "Site is kept for jobs with more memory", "resources", "user",
    "Allow sites without a lower limit on memory.",
)  # fmt: skip
SCRATCH_DISK: Final = _code(
    "scratch_disk", "Not enough scratch disk", "resources", "user",
    "Make smaller jobs (fewer files or events a job), or read the input directly.", severity="error",
)  # fmt: skip

SHORT_WALLTIME: Final = _code(
    "short_walltime", "Site's time limit is too short", "time", "user",
    "Make shorter jobs, or allow sites with a longer time limit.", severity="error",
)  # fmt: skip
LONG_WALLTIME: Final = _code(
    "long_walltime", "Site is kept for longer jobs", "time", "user",
    "Make longer jobs, or allow sites without a lower limit on time.",
)  # fmt: skip

QUEUE_FULL: Final = _code(
    "queue_full", "Enough jobs are queued already", "capacity", "nobody",
    "Wait: jobs are made as the site starts those that are queued.", severity="info",
)  # fmt: skip

THROTTLED_NONE_RUNNING: Final = _code(
    "throttled_none_running", "Throttled: none runs and enough are queued", "throttle", "shifter",
    "See why no site starts jobs of this work queue; more jobs are made as queued ones start to run.",
)  # fmt: skip
THROTTLED_QUEUED: Final = _code(
    "throttled_queued", "Throttled: enough jobs are queued", "throttle", "nobody",
    "Wait: more jobs are made as queued ones start to run.", severity="info",
)  # fmt: skip
THROTTLED_DEFINED: Final = _code(
    "throttled_defined", "Throttled: too many jobs are defined", "throttle", "expert",
    "See what keeps defined jobs from being activated: builds, transfers of input, or data management.",
)  # fmt: skip
THROTTLED_WAITING: Final = _code(
    "throttled_waiting", "Throttled: too many jobs wait for input", "throttle", "expert",
    "See what keeps the inputs of waiting jobs from arriving.",
)  # fmt: skip
THROTTLED_RUNNING_CAP: Final = _code(
    "throttled_running_cap", "Throttled: cap on running jobs", "throttle", "expert",
    "Wait, or raise the cap on running jobs of this work queue.", severity="info",
)  # fmt: skip
THROTTLED_QUEUE_CAP: Final = _code(
    "throttled_queue_cap", "Throttled: cap on queued jobs", "throttle", "expert",
    "Wait, or raise the cap on queued jobs of this work queue.", severity="info",
)  # fmt: skip
THROTTLED_PRIORITY: Final = _code(
    "throttled_priority", "Throttled: more urgent tasks go first", "throttle", "nobody",
    "Wait: jobs of other tasks are made as queued ones start to run.", severity="info",
)  # fmt: skip
USER_RUNNING_JOBS: Final = _code(
    "user_running_jobs", "Throttled: too many running jobs", "throttle", "nobody",
    "Wait: more jobs are made as running ones of the user or the working group end.", severity="info",
)  # fmt: skip
USER_QUEUED_JOBS: Final = _code(
    "user_queued_jobs", "Throttled: too many queued jobs", "throttle", "nobody",
    "Wait: more jobs are made as queued ones of the user or the working group start.", severity="info",
)  # fmt: skip
USER_RUNNING_CORES: Final = _code(
    "user_running_cores", "Throttled: too many running cores", "throttle", "nobody",
    "Wait: more jobs are made as running ones of the user or the working group end.", severity="info",
)  # fmt: skip
USER_QUEUED_CORES: Final = _code(
    "user_queued_cores", "Throttled: too many queued cores", "throttle", "nobody",
    "Wait: more jobs are made as queued ones of the user or the working group start.", severity="info",
)  # fmt: skip
CLASS_C_WAITS: Final = _code(
    "class_c_waits", "Throttled: the share is nearly used up and the task is of class C", "throttle", "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.", severity="info",
)  # fmt: skip
CLASS_B_WAITS: Final = _code(
    "class_b_waits", "Throttled: the share is nearly used up and the task is of class B", "throttle", "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.", severity="info",
)  # fmt: skip
CLASS_A_WAITS: Final = _code(
    "class_a_waits", "Throttled: the share is used up and the task is of class A", "throttle", "nobody",
    "Wait until the share is used less; users with very few running jobs go on.", severity="info",
)  # fmt: skip
OVER_QUOTA: Final = _code(
    "over_quota", "Disk quota exceeded", "throttle", "user",
    "Delete datasets that are not needed any more, or ask for a larger quota.", severity="error",
)  # fmt: skip
NEAR_QUOTA: Final = _code(
    "near_quota", "Close to the disk quota", "throttle", "user",
    "Only merging goes on: delete datasets that are not needed any more, or ask for a larger quota.",
)  # fmt: skip
QUOTA_UNKNOWN: Final = _code(
    "quota_unknown", "Disk quota could not be checked", "throttle", "expert",
    "See whether data management answers; the task is tried again by itself.",
)  # fmt: skip
GENERATION_OFF: Final = _code(
    "generation_off", "Making of jobs is switched off", "throttle", "expert",
    "Wait until JOB_SUBMISSION is set to true again for the organisation.",
)  # fmt: skip
