"""The refusal codes of scouts and of further attempts. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from tasks_app.domain.refusal_codes import code

SCOUTS_NONE_FINISHED: Final = code(
    "scouts_none_finished",
    "No scout job finished",
    "state",
    "user",
    "Look at the errors of the scout jobs, correct the payload or its inputs, and submit the task again.",
    severity="error",
)
SCOUTS_TOO_FEW_SUCCEEDED: Final = code(
    "scouts_too_few_succeeded",
    "Too few scout jobs succeeded",
    "state",
    "user",
    "Look at the errors of the scout jobs and correct their cause before you retry the task.",
    severity="error",
)
SCOUTS_BUILD_FAILED: Final = code(
    "scouts_build_failed",
    "Build jobs of the scouts failed",
    "state",
    "user",
    "Correct the code that does not compile and submit the task again.",
    severity="error",
)
SCOUTS_CPU_TIME: Final = code(
    "scouts_cpu_time",
    "Scout jobs need far more CPU time than declared",
    "time",
    "user",
    "Correct the task's CPU time per event, or retry the task to go on with the measured value.",
    severity="error",
)
SCOUTS_MEMORY: Final = code(
    "scouts_memory",
    "Scout jobs need far more memory than declared",
    "resources",
    "user",
    "Reduce the memory of the payload, or retry the task to go on with the measured memory.",
    severity="error",
)
SCOUTS_MEMORY_LEAK: Final = code(
    "scouts_memory_leak",
    "Scout jobs leak memory",
    "resources",
    "user",
    "Look for the leak, or make shorter jobs; the task continues.",
)
SCOUTS_SHORT_JOBS: Final = code(
    "scouts_short_jobs",
    "Many jobs would be very short",
    "time",
    "user",
    "Put more files or events in each job, then retry the task.",
    severity="error",
)
SCOUTS_LARGER_JOBS: Final = code(
    "scouts_larger_jobs",
    "Jobs are made larger because scouts were short",
    "time",
    "nobody",
    "Nothing needs to be done: the limits on files and size of a job were lifted.",
    severity="info",
)
SCOUTS_LOW_EFFICIENCY: Final = code(
    "scouts_low_efficiency",
    "Scout jobs use little of their CPUs",
    "resources",
    "user",
    "Ask for fewer cores per job or find out what the payload waits for, then retry the task.",
    severity="error",
)
SCOUTS_CPU_OVERUSE: Final = code(
    "scouts_cpu_overuse",
    "Scout jobs use more CPUs than they asked for",
    "resources",
    "user",
    "Ask for as many cores as the payload uses, or make the payload use fewer, then retry the task.",
    severity="error",
)

RETRY_NONE: Final = code(
    "retry_none",
    "Error gets no further attempt",
    "policy",
    "user",
    "Correct the cause of the error, then retry the task.",
    severity="error",
)
RETRY_LIMITED: Final = code(
    "retry_limited",
    "Error gets fewer attempts",
    "policy",
    "nobody",
    "Nothing needs to be done; when the attempts are used up, correct the cause and retry the task.",
    severity="info",
)
RETRY_MORE_MEMORY: Final = code(
    "retry_more_memory",
    "Next attempt gets more memory",
    "resources",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_TASK_MEMORY: Final = code(
    "retry_task_memory",
    "Memory of the whole task is raised",
    "resources",
    "user",
    "Declare more memory when you submit a task like this again.",
    severity="info",
)
RETRY_MEMORY_AT_TOP: Final = code(
    "retry_memory_at_top",
    "Memory cannot be raised further",
    "resources",
    "user",
    "Reduce the memory of the payload: use fewer files, events or cores per job, or remove a memory leak.",
    severity="error",
)
RETRY_MORE_CPU_TIME: Final = code(
    "retry_more_cpu_time",
    "Expected CPU time is raised",
    "time",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_LESS_INPUT: Final = code(
    "retry_less_input",
    "Next attempts read less input",
    "resources",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_NOT_APPLICABLE: Final = code(
    "retry_not_applicable",
    "Retry rule changes nothing",
    "policy",
    "nobody",
    "The task's own settings take precedence over the rule.",
    severity="info",
)
RETRY_SYSTEM_ERROR: Final = code(
    "retry_system_error",
    "Error of the system, not of the job",
    "policy",
    "nobody",
    "Nothing needs to be done: the failure does not count against the file.",
    severity="info",
)
RETRY_SITE_ENDED: Final = code(
    "retry_site_ended",
    "The pilot of the job was ended",
    "policy",
    "nobody",
    "Nothing needs to be done: the attempt does not count against the file.",
    severity="info",
)
RETRY_STORAGE_AWAY: Final = code(
    "retry_storage_away",
    "The storage with the inputs of the job was away",
    "policy",
    "site",
    "Mount the folder of the storage again, or mend its disk: the attempt does not count against the file.",
    severity="info",
)
RETRY_NOT_STORED: Final = code(
    "retry_not_stored",
    "The outputs of the job could not be stored",
    "policy",
    "site",
    "Make room at the storage, or mend it: the attempt does not count against the file.",
    severity="info",
)
TASK_EVENTS_GIVEN_UP: Final = code(
    "task_events_given_up",
    "Some events were given up",
    "state",
    "user",
    "Look at the errors of its event ranges, correct their cause, and retry the task: what was given up is tried again.",
)
