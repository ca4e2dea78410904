"""The refusal codes of tasks, their inputs and their states. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from jedisite.refusals import Fixer, Group, Severity, register


def _code(code: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    return register(code, title, group, severity=severity, who_can_fix=who, advice=advice).code


TASK_PAUSED: Final = _code(
    "task_paused",
    "Task is paused",
    "state",
    "user",
    "Resume the task.",
)
TASK_THROTTLED: Final = _code(
    "task_throttled",
    "Task is throttled",
    "throttle",
    "nobody",
    "Wait until the period is over, or release the task from the throttle.",
    severity="info",
)
PARENT_NOT_FINISHED: Final = _code(
    "parent_not_finished",
    "Parent task has not finished",
    "input",
    "nobody",
    "Wait for the parent task; its outputs are the inputs of this one.",
    severity="info",
)
INPUT_MISSING: Final = _code(
    "input_missing",
    "Input files are missing",
    "input",
    "user",
    "Make the missing files available again, or allow the task to go on without them.",
)
INPUT_NOT_STAGED: Final = _code(
    "input_not_staged",
    "Input is being staged",
    "input",
    "nobody",
    "Wait until the input has been copied from tape.",
    severity="info",
)
INPUT_USED_UP: Final = _code(
    "input_used_up",
    "All inputs are in jobs or done",
    "input",
    "nobody",
    "No new job is needed at the moment.",
    severity="info",
)
INPUT_GROWS: Final = _code(
    "input_grows",
    "Its input may still get files",
    "input",
    "nobody",
    "Wait until the dataset has enough files for its jobs, or gets no more: the task that makes it closes it when it ends; one "
    "that no task makes is closed by its owner.",
    severity="info",
)

SCOUTS_NONE_FINISHED: Final = _code(
    "scouts_none_finished",
    "No scout job finished",
    "state",
    "user",
    "Look at the errors of the scout jobs, mend the payload or its inputs, and submit the task anew.",
    severity="error",
)
SCOUTS_TOO_FEW_SUCCEEDED: Final = _code(
    "scouts_too_few_succeeded",
    "Too few scout jobs succeeded",
    "state",
    "user",
    "Look at the errors of the scout jobs and mend their cause before the task is tried again.",
    severity="error",
)
SCOUTS_BUILD_FAILED: Final = _code(
    "scouts_build_failed",
    "Build jobs of the scouts failed",
    "state",
    "user",
    "Mend what does not compile and submit the task anew.",
    severity="error",
)
SCOUTS_CPU_TIME: Final = _code(
    "scouts_cpu_time",
    "Scout jobs need far more CPU time than declared",
    "time",
    "user",
    "Correct the CPU time an event of the task, or retry it to let it go on as measured.",
    severity="error",
)
SCOUTS_MEMORY: Final = _code(
    "scouts_memory",
    "Scout jobs need far more memory than declared",
    "resources",
    "user",
    "Reduce the memory of the payload, or retry the task to let it go on with the memory measured.",
    severity="error",
)
SCOUTS_MEMORY_LEAK: Final = _code(
    "scouts_memory_leak",
    "Scout jobs leak memory",
    "resources",
    "user",
    "Look for the leak, or make shorter jobs; the task goes on.",
)
SCOUTS_SHORT_JOBS: Final = _code(
    "scouts_short_jobs",
    "Many jobs would be very short",
    "time",
    "user",
    "Put more files or events in each job, then retry the task.",
    severity="error",
)
SCOUTS_LARGER_JOBS: Final = _code(
    "scouts_larger_jobs",
    "Jobs are made larger since scouts were short",
    "time",
    "nobody",
    "Nothing needs to be done: the limits on files and size of a job were lifted.",
    severity="info",
)
SCOUTS_LOW_EFFICIENCY: Final = _code(
    "scouts_low_efficiency",
    "Scout jobs use little of their CPUs",
    "resources",
    "user",
    "Ask for fewer cores a job or find out what the payload waits for, then retry the task.",
    severity="error",
)
SCOUTS_CPU_OVERUSE: Final = _code(
    "scouts_cpu_overuse",
    "Scout jobs use more CPUs than they asked for",
    "resources",
    "user",
    "Ask for as many cores as the payload uses, or make it use fewer, then retry the task.",
    severity="error",
)

RETRY_NONE: Final = _code(
    "retry_none",
    "Error is not worth another attempt",
    "policy",
    "user",
    "Mend the cause of the error, then retry the task.",
    severity="error",
)
RETRY_LIMITED: Final = _code(
    "retry_limited",
    "Error has fewer attempts",
    "policy",
    "nobody",
    "Nothing needs to be done; when the attempts are used up, mend the cause and retry the task.",
    severity="info",
)
RETRY_MORE_MEMORY: Final = _code(
    "retry_more_memory",
    "Next attempt gets more memory",
    "resources",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_TASK_MEMORY: Final = _code(
    "retry_task_memory",
    "Memory of the whole task is raised",
    "resources",
    "user",
    "Declare more memory when a task like this is submitted again.",
    severity="info",
)
RETRY_MEMORY_AT_TOP: Final = _code(
    "retry_memory_at_top",
    "Memory cannot be raised further",
    "resources",
    "user",
    "Reduce the memory of the payload: fewer files or events a job, fewer cores, or a mended leak.",
    severity="error",
)
RETRY_MORE_CPU_TIME: Final = _code(
    "retry_more_cpu_time",
    "Expected CPU time is raised",
    "time",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_LESS_INPUT: Final = _code(
    "retry_less_input",
    "Next attempts read less input",
    "resources",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
RETRY_NOT_APPLICABLE: Final = _code(
    "retry_not_applicable",
    "Retry rule changes nothing",
    "policy",
    "nobody",
    "The task's own settings take precedence over the rule.",
    severity="info",
)
RETRY_SYSTEM_ERROR: Final = _code(
    "retry_system_error",
    "Error of the system, not of the job",
    "policy",
    "nobody",
    "Nothing needs to be done: the failure does not count against the file.",
    severity="info",
)
RETRY_SITE_ENDED: Final = _code(
    "retry_site_ended",
    "The pilot of the job was ended",
    "policy",
    "nobody",
    "Nothing needs to be done: the attempt does not count against the file.",
    severity="info",
)

TASK_ALL_DONE: Final = _code(
    "task_all_done",
    "All inputs were processed",
    "state",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_DONE_AND_WARNED: Final = _code(
    "task_done_and_warned",
    "All inputs were processed; the site warned when it was submitted",
    "state",
    "user",
    "Check that its outputs are what was meant. If not, correct what the warning names, and submit it again under another name.",
)
TASK_SOME_DONE: Final = _code(
    "task_some_done",
    "Some inputs were not processed",
    "state",
    "user",
    "Look at the errors, mend their cause, and retry the task.",
)
TASK_NONE_DONE: Final = _code(
    "task_none_done",
    "No input was processed",
    "state",
    "user",
    "Look at the errors, mend their cause, and retry the task or run it again (incexec).",
    severity="error",
)
TASK_PARENT_INCOMPLETE: Final = _code(
    "task_parent_incomplete",
    "Input may be incomplete, as the task that makes it is",
    "input",
    "user",
    "Retry the task that makes the input. Then run this one again on what is added; a child task does so by itself.",
)
TASK_PARENT_NOT_DONE: Final = _code(
    "task_parent_not_done",
    "Parent task, which makes none of the input, is not done",
    "state",
    "user",
    "Nothing is missing. Once the parent task is done, this one is done too; if it has failed, run it again then (Run again on "
    "its page, prun with the same --outDS, or incexec): it is done without a job.",
    severity="info",
)
TASK_GOAL_MISSED: Final = _code(
    "task_goal_missed",
    "Goal was not reached",
    "state",
    "user",
    "Mend the cause of the errors and retry the task or run it again (incexec), or lower its goal.",
    severity="error",
)
TASK_GOAL_REACHED: Final = _code(
    "task_goal_reached",
    "Goal is reached",
    "state",
    "nobody",
    "Nothing needs to be done: jobs that have started end, and no more are made.",
    severity="info",
)

TASK_MANY_ATTEMPTS: Final = _code(
    "task_many_attempts",
    "Throttled after many attempts",
    "throttle",
    "user",
    "Look at the errors meanwhile; new jobs are made when the period is over.",
)
TASK_UNTHROTTLED: Final = _code(
    "task_unthrottled",
    "Throttling is over",
    "throttle",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_BOOSTED: Final = _code(
    "task_boosted",
    "Last jobs of the task go first",
    "policy",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_AUTO_PAUSED: Final = _code(
    "task_auto_paused",
    "Paused since many jobs fail",
    "policy",
    "expert",
    "Find out why the jobs fail, then resume the task.",
    severity="error",
)
TASK_TRIES_AGAIN: Final = _code(
    "task_tries_again",
    "Pending task tries again",
    "state",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_PENDING_TOO_LONG: Final = _code(
    "task_pending_too_long",
    "Pending for too long",
    "state",
    "user",
    "See why the task was pending, change its requirements, and retry it.",
    severity="error",
)
TASK_EXHAUSTED_TOO_LONG: Final = _code(
    "task_exhausted_too_long",
    "Nobody decided about the exhausted task",
    "state",
    "nobody",
    "The task is finished with what it has; retry it to go on.",
)

TASK_WITHHELD: Final = _code(
    "task_withheld",
    "Withheld from busy storage",
    "throttle",
    "nobody",
    "Wait until a queue near the input has room, or raise the priority of the task.",
    severity="info",
)

JOB_WAITED_TOO_LONG: Final = _code(
    "job_waited_too_long",
    "Job was not started in time",
    "time",
    "nobody",
    "Nothing needs to be done: its inputs go into a new job, possibly elsewhere.",
)
JOB_QUEUE_INACTIVE: Final = _code(
    "job_queue_inactive",
    "Urgent job waited at a queue that starts none",
    "time",
    "site",
    "Nothing needs to be done for the job; find out why the queue starts none.",
)
JOB_QUEUE_OVERLOADED: Final = _code(
    "job_queue_overloaded",
    "Queue holds more jobs than it can start",
    "capacity",
    "nobody",
    "Nothing needs to be done: the jobs in excess are made anew, possibly elsewhere.",
    severity="info",
)
JOB_LOST_HEARTBEAT: Final = _code(
    "job_lost_heartbeat",
    "Job gave no sign of life",
    "time",
    "site",
    "Its inputs are tried again; when it happens often, look at the worker nodes and the batch system of the site.",
    severity="error",
)
JOB_NOT_BOOKED: Final = _code(
    "job_not_booked",
    "End of the job was not booked in time",
    "time",
    "expert",
    "Its inputs are tried again; look whether reports are booked.",
    severity="error",
)
JOB_TRANSFER_TOO_LONG: Final = _code(
    "job_transfer_too_long",
    "Outputs did not arrive in time",
    "data",
    "site",
    "Its inputs are tried again; look at the transfers from the site.",
    severity="error",
)
JOB_TRANSFER_UNCHECKED: Final = _code(
    "job_transfer_unchecked",
    "Transfer of the outputs is looked at again",
    "data",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
JOB_RAN_TOO_LONG: Final = _code(
    "job_ran_too_long",
    "Job ran for too long",
    "time",
    "user",
    "Make shorter jobs: fewer files or events in each.",
    severity="error",
)
JOB_NO_PARENT: Final = _code(
    "job_no_parent",
    "Merge job has nothing to merge",
    "state",
    "nobody",
    "Nothing needs to be done: the merge job is ended.",
    severity="info",
)
TASK_ENDED: Final = _code(
    "task_ended",
    "Task has ended",
    "state",
    "user",
    "Retry the task if more is wanted of it.",
    severity="info",
)
TASK_NOTHING_LEFT: Final = _code(
    "task_nothing_left",
    "Task has ended, and a retry would do nothing",
    "state",
    "user",
    "If more is wanted of the task, run it again (incexec): its input is looked up again.",
    severity="info",
)
TASK_SITES_GONE: Final = _code(
    "task_sites_gone",
    "The task's sites do not exist any more",
    "state",
    "user",
    "If more is wanted of the task, run it again (incexec) with other sites; a retry would wait for those that are gone.",
)
TASK_STOPPED_BY_ITSELF: Final = _code(
    "task_stopped_by_itself",
    "Task waits for somebody to decide",
    "state",
    "user",
    "Look at what its jobs said, then retry, finish or kill the task.",
    severity="error",
)
TASK_ENDING: Final = _code(
    "task_ending",
    "Task makes no more jobs",
    "state",
    "nobody",
    "Wait: it ends by itself when the last of its open jobs has ended.",
    severity="info",
)
TASK_FAILED: Final = _code(
    "task_failed",
    "Task has failed",
    "state",
    "user",
    "Retry the task, or run it again (incexec) with changed parameters; none of its jobs had an error.",
    severity="error",
)
TASK_FAILED_WITH_ERRORS: Final = _code(
    "task_failed_with_errors",
    "Task has failed, and jobs of it as well",
    "state",
    "user",
    "Look at the errors of its jobs, mend their cause, and retry the task or run it again (incexec).",
    severity="error",
)
TASK_BROKEN: Final = _code(
    "task_broken",
    "Task is broken",
    "state",
    "user",
    "Mend what the sentence says and submit the task anew: a broken task takes no command.",
    severity="error",
)
NOT_LOOKED_AT: Final = _code(
    "not_looked_at",
    "Not looked at yet",
    "state",
    "nobody",
    "Wait for the first pass of the job generator; it asks the broker where the jobs may run.",
    severity="info",
)
JOBS_RATIONED: Final = _code(
    "jobs_rationed",
    "Throttled: other tasks use up the jobs that may be made",
    "throttle",
    "nobody",
    "Wait: so many jobs are made in each pass of the job generator, of the most urgent tasks first.",
    severity="info",
)
TASK_WAITS_TO_RETRY: Final = _code(
    "task_waits_to_retry",
    "Task waits to be tried again",
    "state",
    "nobody",
    "Wait until the time is over; the sentence says what was lacking.",
    severity="info",
)
TASK_NOT_REFINED: Final = _code(
    "task_not_refined",
    "Task is not read yet",
    "input",
    "nobody",
    "Wait for the refiner.",
    severity="info",
)
INPUT_NOT_READ: Final = _code(
    "input_not_read",
    "Files of the input are not known yet",
    "input",
    "nobody",
    "Wait: it is looked for again and again. If it stays so, look at the dataset in data management.",
    severity="info",
)
AGENT_LATE: Final = _code(
    "agent_late",
    "Agent is late",
    "state",
    "expert",
    "Look at the page of agents: it fails, or no worker of the site runs.",
    severity="error",
)
AGENT_PAUSED: Final = _code(
    "agent_paused",
    "Agent is paused",
    "state",
    "shifter",
    "Resume the agent on its page, once what it was paused for is over: any shifter or administrator may do that.",
)
AGENT_FAILS: Final = _code(
    "agent_fails",
    "An agent fails at the task",
    "state",
    "expert",
    "Report the error with the task's number; the agent tries again by itself, after an hour at most.",
    severity="error",
)
NO_NUCLEUS_YET: Final = _code(
    "no_nucleus_yet",
    "No nucleus is chosen",
    "data",
    "nobody",
    "Wait for the task broker; its verdict says what the nuclei lack.",
)
NO_JOB_MADE: Final = _code(
    "no_job_made",
    "No job has been made",
    "state",
    "nobody",
    "Wait for the job generator.",
    severity="info",
)
JOBS_NOT_ACTIVATED: Final = _code(
    "jobs_not_activated",
    "Jobs are not ready to run",
    "state",
    "nobody",
    "They wait for a library to be built or for their input; look at the build job.",
    severity="info",
)
NO_PILOT_CAME: Final = _code(
    "no_pilot_came",
    "No pilot asks for the jobs",
    "capacity",
    "site",
    "Have pilots started for the queue: by its batch system or harvester, by manage.py local_workers on a machine of the site, "
    "which gives each pilot its token, or one by hand (docs/sites.md).",
)
JOBS_AT_CLOSED_QUEUE: Final = _code(
    "jobs_at_closed_queue",
    "Jobs wait at a queue that runs none",
    "capacity",
    "shifter",
    "Have the queue set online, or reassign the task: its waiting jobs are closed then, and new ones go to other sites.",
)
SCOUTS_GO_FIRST: Final = _code(
    "scouts_go_first",
    "Scouts must end first",
    "state",
    "nobody",
    "Wait: the first jobs show what the others need, which are made then.",
    severity="info",
)
SHARE_IS_ZERO: Final = _code(
    "share_is_zero",
    "The share has a target of 0",
    "capacity",
    "expert",
    "Have the value of the share raised, or reassign the task to another share: until then its jobs get only slots for which "
    "no other share has a job.",
)
NO_JOB_RUNS: Final = _code(
    "no_job_runs",
    "Jobs wait for a free slot",
    "capacity",
    "nobody",
    "Wait: pilots come, and take jobs of more urgent shares and priorities first.",
    severity="info",
)

JOB_ENDED_BADLY: Final = _code(
    "job_ended_badly",
    "Job has ended without success",
    "state",
    "user",
    "Look at its error; its inputs are tried again in a new job while they have attempts.",
    severity="error",
)
JOB_WAITS_FOR_LIBRARY: Final = _code(
    "job_waits_for_library",
    "Job waits for its library",
    "input",
    "nobody",
    "Wait for the job that builds it; when that fails, look at its log.",
    severity="info",
)
JOB_WAITS_FOR_INPUT: Final = _code(
    "job_waits_for_input",
    "Input is on its way to the site",
    "input",
    "nobody",
    "Wait for the transfer; when it takes long, look at data management.",
    severity="info",
)
JOBS_GO_FIRST: Final = _code(
    "jobs_go_first",
    "Other jobs of the site go first",
    "capacity",
    "nobody",
    "Wait, or raise the priority of the task: jobs of under-used shares go first, in each the most urgent.",
    severity="info",
)
JOB_UNWALLED: Final = _code(
    "job_unwalled",
    "Nothing keeps payloads apart from the site's machine",
    "capacity",
    "site",
    "Install bubblewrap on the machine of the pilots and start them again, or send the task to another site.",
)
JOB_STARTS: Final = _code(
    "job_starts",
    "Pilot has not started the payload yet",
    "state",
    "nobody",
    "Wait: the pilot gets input and software ready; without a sign of life the job is given up.",
    severity="info",
)
JOB_IS_BOOKED: Final = _code(
    "job_is_booked",
    "End of the job is being booked",
    "state",
    "nobody",
    "Wait for the adder; when it takes long, look at the page of agents.",
    severity="info",
)
JOB_OUTPUT_MOVES: Final = _code(
    "job_output_moves",
    "Outputs are on their way",
    "data",
    "nobody",
    "Wait for the transfer of its outputs; when it takes long, look at data management.",
    severity="info",
)
JOB_OUTPUT_MERGES: Final = _code(
    "job_output_merges",
    "Outputs wait to be merged",
    "data",
    "nobody",
    "Wait for the merge job.",
    severity="info",
)
NO_SITE_CHOSEN: Final = _code(
    "no_site_chosen",
    "No site is chosen for the job",
    "state",
    "nobody",
    "Wait for the broker; the page of its task says what the sites lack.",
    severity="info",
)
