"""The refusal codes of tasks and of their inputs. A code is never renamed or given a new meaning."""

from __future__ import annotations

from typing import Final

from jedisite.refusals import Fixer, Group, Severity, register


def code(name: str, title: str, group: Group, who: Fixer, advice: str, *, severity: Severity = "warning") -> str:
    """A refusal code of tasks or jobs is registered under its name; returns the name."""
    return register(name, title, group, severity=severity, who_can_fix=who, advice=advice).code


TASK_PAUSED: Final = code(
    "task_paused",
    "Task is paused",
    "state",
    "user",
    "Resume the task.",
)
TASK_THROTTLED: Final = code(
    "task_throttled",
    "Task is throttled",
    "throttle",
    "nobody",
    "Wait until the period is over, or resume the task.",
    severity="info",
)
PARENT_NOT_FINISHED: Final = code(
    "parent_not_finished",
    "Parent task has not finished",
    "input",
    "nobody",
    "Wait for the parent task; its outputs are the inputs of this one.",
    severity="info",
)
INPUT_MISSING: Final = code(
    "input_missing",
    "Input files are missing",
    "input",
    "user",
    "Make the missing files available again, or allow the task to go on without them.",
)
INPUT_NOT_STAGED: Final = code(
    "input_not_staged",
    "Input is being staged",
    "input",
    "nobody",
    "Wait until the input has been copied from tape; the page Transfers shows how far that is.",
    severity="info",
)
INPUT_USED_UP: Final = code(
    "input_used_up",
    "All inputs are in jobs or done",
    "input",
    "nobody",
    "No new job is needed at the moment.",
    severity="info",
)
INPUT_GROWS: Final = code(
    "input_grows",
    "Input may still get files",
    "input",
    "nobody",
    "Wait until the dataset has enough files for its jobs, or gets no more: the task that makes it closes it when it ends; one "
    "that no task makes is closed by an operator of this site, with manage.py register_dataset NAME FILE... without --open. The "
    "command finish ends the task with the files that it has.",
    severity="info",
)


TASK_ALL_DONE: Final = code(
    "task_all_done",
    "All inputs were processed",
    "state",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_DONE_AND_WARNED: Final = code(
    "task_done_and_warned",
    "All inputs were processed; the site had a warning",
    "state",
    "user",
    "Check that the outputs are what you meant. If not, correct what the warning names, and submit the task again "
    "under another name.",
)
TASK_SOME_DONE: Final = code(
    "task_some_done",
    "Some inputs were not processed",
    "state",
    "user",
    "Look at the errors, correct their cause, and retry the task.",
)
TASK_NONE_DONE: Final = code(
    "task_none_done",
    "No input was processed",
    "state",
    "user",
    "Look at the errors, correct their cause, and retry the task or run it again (incexec).",
    severity="error",
)
TASK_PARENT_INCOMPLETE: Final = code(
    "task_parent_incomplete",
    "Input may be incomplete, because the task that makes it is",
    "input",
    "user",
    "Retry the task that makes the input. Then run this task again on the added files; a child task does so automatically.",
)
TASK_PARENT_NOT_DONE: Final = code(
    "task_parent_not_done",
    "Parent task, which makes none of the input, is not done",
    "state",
    "user",
    "Nothing is missing. Once the parent task is done, this one is done too; if it has failed, run it again then (Run again on "
    "its page, prun with the same --outDS, or incexec): it is done without a job.",
    severity="info",
)
TASK_GOAL_MISSED: Final = code(
    "task_goal_missed",
    "Goal was not reached",
    "state",
    "user",
    "Correct the cause of the errors and retry the task or run it again (incexec), or lower its goal.",
    severity="error",
)
TASK_GOAL_REACHED: Final = code(
    "task_goal_reached",
    "Goal is reached",
    "state",
    "nobody",
    "Nothing needs to be done: started jobs run to their end, and no more are made.",
    severity="info",
)

TASK_MANY_ATTEMPTS: Final = code(
    "task_many_attempts",
    "Throttled after many attempts",
    "throttle",
    "user",
    "Look at the errors meanwhile; new jobs are made when the period is over.",
)
TASK_UNTHROTTLED: Final = code(
    "task_unthrottled",
    "Throttling is over",
    "throttle",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_BOOSTED: Final = code(
    "task_boosted",
    "Last jobs of the task go first",
    "policy",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_AUTO_PAUSED: Final = code(
    "task_auto_paused",
    "Paused because many jobs fail",
    "policy",
    "expert",
    "Find out why the jobs fail, then resume the task.",
    severity="error",
)
TASK_TRIES_AGAIN: Final = code(
    "task_tries_again",
    "Pending task tries again",
    "state",
    "nobody",
    "Nothing needs to be done.",
    severity="info",
)
TASK_PENDING_TOO_LONG: Final = code(
    "task_pending_too_long",
    "Pending for too long",
    "state",
    "user",
    "Find out why the task was pending, change its requirements, and retry it.",
    severity="error",
)
TASK_EXHAUSTED_TOO_LONG: Final = code(
    "task_exhausted_too_long",
    "Nobody acted on the exhausted task",
    "state",
    "nobody",
    "The task is finished with the outputs it has; retry it to go on.",
)

TASK_WITHHELD: Final = code(
    "task_withheld",
    "Withheld from busy storage",
    "throttle",
    "nobody",
    "Wait until a queue near the input has room, or raise the priority of the task.",
    severity="info",
)

TASK_ENDED: Final = code(
    "task_ended",
    "Task has ended",
    "state",
    "user",
    "Retry the task to process more of its input.",
    severity="info",
)
TASK_NOTHING_LEFT: Final = code(
    "task_nothing_left",
    "Task has ended, and a retry would change nothing",
    "state",
    "user",
    "To process new input, run the task again (incexec): its input is looked up again.",
    severity="info",
)
TASK_READS_LOST: Final = code(
    "task_reads_lost",
    "Some of its files are lost, and others are made in their place",
    "state",
    "user",
    "Run the task again (incexec) once the task that makes them has ended: it then reads the others.",
)
TASK_SITES_GONE: Final = code(
    "task_sites_gone",
    "The task's sites no longer exist",
    "state",
    "user",
    "To go on, run the task again (incexec) with other sites; a retry would wait for sites that no longer exist.",
)
TASK_STOPPED_BY_ITSELF: Final = code(
    "task_stopped_by_itself",
    "Task waits for a decision",
    "state",
    "user",
    "Look at the errors of its jobs, then retry, finish or kill the task.",
    severity="error",
)
TASK_ENDING: Final = code(
    "task_ending",
    "Task makes no more jobs",
    "state",
    "nobody",
    "Wait: it ends by itself when the last of its open jobs has ended.",
    severity="info",
)
TASK_FAILED: Final = code(
    "task_failed",
    "Task has failed",
    "state",
    "user",
    "Retry the task, or run it again (incexec) with changed parameters; none of its jobs had an error.",
    severity="error",
)
TASK_FAILED_WITH_ERRORS: Final = code(
    "task_failed_with_errors",
    "Task has failed, and some of its jobs too",
    "state",
    "user",
    "Look at the errors of its jobs, correct their cause, and retry the task or run it again (incexec).",
    severity="error",
)
TASK_BROKEN: Final = code(
    "task_broken",
    "Task is broken",
    "state",
    "user",
    "Correct what the sentence names and submit the task again: a broken task accepts no command.",
    severity="error",
)
NOT_LOOKED_AT: Final = code(
    "not_looked_at",
    "No decision yet",
    "state",
    "nobody",
    "Wait for the first pass of the job generator; it asks the broker where the jobs may run.",
    severity="info",
)
JOBS_RATIONED: Final = code(
    "jobs_rationed",
    "Throttled: other tasks use up the limit on new jobs",
    "throttle",
    "nobody",
    "Wait: each pass of the job generator makes a limited number of jobs, for the most urgent tasks first.",
    severity="info",
)
TASK_WAITS_TO_RETRY: Final = code(
    "task_waits_to_retry",
    "Task waits for its next attempt",
    "state",
    "nobody",
    "Wait until the time is over; the sentence names what was missing.",
    severity="info",
)
TASK_NOT_REFINED: Final = code(
    "task_not_refined",
    "Task has not been refined yet",
    "input",
    "nobody",
    "Wait for the refiner.",
    severity="info",
)
INPUT_NOT_READ: Final = code(
    "input_not_read",
    "Input files are not known yet",
    "input",
    "nobody",
    "Wait: the input is looked up repeatedly. If that does not help, check the dataset in data management.",
    severity="info",
)
AGENT_LATE: Final = code(
    "agent_late",
    "Agent is late",
    "state",
    "expert",
    "See the page Agents: the agent fails, or no worker process of this site runs.",
    severity="error",
)
AGENT_PAUSED: Final = code(
    "agent_paused",
    "Agent is paused",
    "state",
    "shifter",
    "Resume the agent on its page when the reason for the pause is over; any shifter or administrator can do that.",
)
AGENT_FAILS: Final = code(
    "agent_fails",
    "An agent fails at the task",
    "state",
    "expert",
    "Report the error with the task's number; the agent retries automatically, within an hour.",
    severity="error",
)
NO_NUCLEUS_YET: Final = code(
    "no_nucleus_yet",
    "No nucleus is chosen",
    "data",
    "nobody",
    "Wait for the task broker; its verdict shows what the nuclei lack.",
)
NO_JOB_MADE: Final = code(
    "no_job_made",
    "No job has been made",
    "state",
    "nobody",
    "Wait for the job generator.",
    severity="info",
)
JOBS_NOT_ACTIVATED: Final = code(
    "jobs_not_activated",
    "Jobs are not ready to run",
    "state",
    "nobody",
    "Wait: the jobs need their library, their input or a lower load first; the page Why of a job says which.",
    severity="info",
)
NO_PILOT_CAME: Final = code(
    "no_pilot_came",
    "No pilot asks for the jobs",
    "capacity",
    "site",
    "Have pilots started for the queue: by its batch system or harvester, by manage.py local_workers on a machine of the site, "
    "which gives each pilot its token, or one by hand (docs/sites.md).",
)
JOBS_AT_CLOSED_QUEUE: Final = code(
    "jobs_at_closed_queue",
    "Jobs wait at a queue that runs none",
    "capacity",
    "shifter",
    "Have the queue set online, or reassign the task: its waiting jobs are then closed, and new ones go to other sites.",
)
SCOUTS_GO_FIRST: Final = code(
    "scouts_go_first",
    "Scouts must end first",
    "state",
    "nobody",
    "Wait: the scouts show what the other jobs need; those are made afterwards.",
    severity="info",
)
SHARE_IS_ZERO: Final = code(
    "share_is_zero",
    "The share has a target of 0",
    "capacity",
    "expert",
    "Have the value of the share raised, or reassign the task to another share: until then its jobs get only slots for which "
    "no other share has a job.",
)
NO_JOB_RUNS: Final = code(
    "no_job_runs",
    "Jobs wait for a free slot",
    "capacity",
    "nobody",
    "Wait: pilots take jobs of under-used shares and higher priorities first.",
    severity="info",
)
