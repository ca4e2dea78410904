"""Why no more jobs are made for a work queue, a share or a user."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

THROTTLED_NONE_RUNNING: Final = code(
    "throttled_none_running",
    "Throttled: no job runs and enough are queued",
    "throttle",
    "shifter",
    "Find out why no site starts jobs of this work queue; more jobs are made as queued ones start.",
)
THROTTLED_QUEUED: Final = code(
    "throttled_queued",
    "Throttled: enough jobs are queued",
    "throttle",
    "nobody",
    "Wait: more jobs are made as queued ones start.",
    severity="info",
)
THROTTLED_DEFINED: Final = code(
    "throttled_defined",
    "Throttled: too many jobs are defined",
    "throttle",
    "expert",
    "Find out what keeps defined jobs from being activated: builds, input transfers or data management.",
)
THROTTLED_WAITING: Final = code(
    "throttled_waiting",
    "Throttled: too many jobs wait for input",
    "throttle",
    "expert",
    "Find out why the inputs of waiting jobs do not arrive.",
)
THROTTLED_RUNNING_CAP: Final = code(
    "throttled_running_cap",
    "Throttled: cap on running jobs",
    "throttle",
    "expert",
    "Wait until running jobs have ended, or have the cap raised: administrators set NRUNNINGCAP of the work queue or share in "
    "the configuration, component prod_job_throttler or anal_job_throttler.",
    severity="info",
)
THROTTLED_QUEUE_CAP: Final = code(
    "throttled_queue_cap",
    "Throttled: cap on queued jobs",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs, or have the cap raised: administrators set NQUEUECAP of the work queue or "
    "share in the configuration, component prod_job_throttler or anal_job_throttler.",
    severity="info",
)
THROTTLED_CAP_ZERO: Final = code(
    "throttled_cap_zero",
    "Throttled: the cap is 0",
    "throttle",
    "expert",
    "Have the cap raised: administrators set NQUEUECAP and NRUNNINGCAP of the work queue or share in the configuration, "
    "component prod_job_throttler or anal_job_throttler.",
)
THROTTLED_PRIORITY: Final = code(
    "throttled_priority",
    "Throttled: more urgent tasks go first",
    "throttle",
    "nobody",
    "Wait: jobs of other tasks are made as queued ones start to run.",
    severity="info",
)
USER_RUNNING_JOBS: Final = code(
    "user_running_jobs",
    "Throttled: too many running jobs",
    "throttle",
    "expert",
    "Wait: more jobs are made as running ones of the user or the working group end. Administrators set the cap: "
    "CAP_RUNNING_USER_JOBS (of groups CAP_RUNNING_GROUP_JOBS) in the configuration, component prio_mgr.",
    severity="info",
)
USER_QUEUED_JOBS: Final = code(
    "user_queued_jobs",
    "Throttled: too many queued jobs",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs of the user or the working group; if none come, have pilots started at their "
    "queues. The cap is twice CAP_RUNNING_USER_JOBS (of groups CAP_RUNNING_GROUP_JOBS), which administrators set in the "
    "configuration, component prio_mgr.",
    severity="info",
)
USER_RUNNING_CORES: Final = code(
    "user_running_cores",
    "Throttled: too many running cores",
    "throttle",
    "expert",
    "Wait: more jobs are made as running ones of the user or the working group end. Administrators set the cap: "
    "CAP_RUNNING_USER_CORES (of groups CAP_RUNNING_GROUP_CORES) in the configuration, component prio_mgr.",
    severity="info",
)
USER_QUEUED_CORES: Final = code(
    "user_queued_cores",
    "Throttled: too many queued cores",
    "throttle",
    "expert",
    "Wait until pilots have started queued jobs of the user or the working group; if none come, have pilots started at their "
    "queues. The cap is twice CAP_RUNNING_USER_CORES (of groups CAP_RUNNING_GROUP_CORES), which administrators set in the "
    "configuration, component prio_mgr.",
    severity="info",
)
USER_CAP_ZERO: Final = code(
    "user_cap_zero",
    "Throttled: the cap is 0",
    "throttle",
    "expert",
    "Have the cap raised: administrators set CAP_RUNNING_USER_JOBS, CAP_RUNNING_USER_CORES, CAP_RUNNING_GROUP_JOBS and "
    "CAP_RUNNING_GROUP_CORES in the configuration, component prio_mgr.",
)
CLASS_C_WAITS: Final = code(
    "class_c_waits",
    "Throttled: the share is nearly used up and the task is of class C",
    "throttle",
    "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.",
    severity="info",
)
CLASS_B_WAITS: Final = code(
    "class_b_waits",
    "Throttled: the share is nearly used up and the task is of class B",
    "throttle",
    "nobody",
    "Wait: users who run less go first; more jobs are made as the user's own running jobs end.",
    severity="info",
)
CLASS_A_WAITS: Final = code(
    "class_a_waits",
    "Throttled: the share is used up and the task is of class A",
    "throttle",
    "nobody",
    "Wait until the share is used less; users with very few running jobs still get jobs.",
    severity="info",
)
OVER_QUOTA: Final = code(
    "over_quota",
    "Disk quota exceeded",
    "throttle",
    "user",
    "Delete datasets that are no longer needed, or ask for a larger quota.",
    severity="error",
)
NEAR_QUOTA: Final = code(
    "near_quota",
    "Close to the disk quota",
    "throttle",
    "user",
    "Only merge jobs are made: delete datasets that are no longer needed, or ask for a larger quota.",
)
QUOTA_UNKNOWN: Final = code(
    "quota_unknown",
    "Disk quota could not be checked",
    "throttle",
    "expert",
    "Check whether data management answers; the task is retried automatically.",
)
GENERATION_OFF: Final = code(
    "generation_off",
    "Throttled: job generation is switched off",
    "throttle",
    "expert",
    "Wait until JOB_SUBMISSION is set to true again for the organisation.",
)
