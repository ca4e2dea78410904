"""The status line of a task: one sentence, written by the system. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks_app.domain import words
from tasks_app.domain.progress import Progress
from tasks_app.domain.states import JOB_AT_PILOT, JOB_QUEUED, JobStatus, TaskStatus
from tasks_app.transfers.rules.under_way import NOTHING, UnderWay

T = TaskStatus

WAITS: dict[str, str] = {
    T.REGISTERED: "it waits for the refiner",
    T.DEFINED: "its input files are being looked up",
    T.ASSIGNING: "it waits for the task broker to choose its nucleus",
    T.READY: "it waits for the job generator",
    T.SCOUTED: "its scouts are done and are being measured",
    T.PREPARED: "all its jobs have ended and it is being finished",
    T.FINISHING: "it makes no more jobs and ends when its open jobs end",
    T.PASSED: "it is being finished",
    T.ABORTING: "its jobs are being killed",
    T.TOABORT: "its jobs are being killed",
    T.TOBROKEN: "it is being given up",
    T.TOPREPROCESS: "its input has to be prepared first",
    T.PREPROCESSING: "its input is being prepared",
    T.TORETRY: "its failed files are being prepared for a retry",
    T.TOINCEXEC: "it is being restarted with changed parameters",
    T.REREFINE: "its changed parameters are being read",
    T.STAGING: "its input is being staged",
    T.STAGED: "its input has been staged",
    T.TOREASSIGN: "it is being moved to another nucleus",
    T.REASSIGNING: "it is being moved to another nucleus",
    T.PAUSED: "it continues when it is resumed",
    T.THROTTLED: "too many of its jobs failed, so it gets no jobs for a while",
    T.EXHAUSTED: "it stopped by itself and waits for a decision",
}

_TAKES_MORE = (T.DEFINED, T.READY, T.RUNNING, T.SCOUTING)


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What the sentence is made of: `jobs` by status, `sites` that run some, `waits_for` says why no job is made, `outgoing`
    which outputs are gathered, `grows` is an input that may still get files.
    """

    status: str
    progress: Progress = field(default_factory=Progress)
    jobs: Mapping[str, int] = field(default_factory=dict)
    sites: int = 0
    error_dialog: str = ""
    waits_for: str = ""
    last_reason: str = ""
    grows: str = ""
    outgoing: UnderWay = NOTHING


def status_line(facts: TaskFacts) -> str:
    """One or two sentences: what the task is doing, how far it is, and what holds it up."""
    head = f"{facts.status.capitalize()}: "
    progress = facts.progress.label() if facts.progress.total else ""
    if words.is_final_task(facts.status):
        return head + _ended(facts, progress)
    # Who paused it and why is said in the reason of the move.
    paused = facts.last_reason.strip().rstrip(".") if facts.status == T.PAUSED else ""
    if paused.startswith("paused by "):
        head, paused = f"{facts.status.capitalize()} ", paused.removeprefix("paused ")
    parts = [part for part in (paused, progress) if part]
    running = facts.jobs.get(JobStatus.RUNNING, 0)
    starting = sum(facts.jobs.get(status, 0) for status in JOB_AT_PILOT) - running
    building, lacking = facts.jobs.get(JobStatus.DEFINED, 0), facts.jobs.get(JobStatus.ASSIGNED, 0)
    moving = facts.jobs.get(JobStatus.TRANSFERRING, 0)
    queued = sum(facts.jobs.get(status, 0) for status in JOB_QUEUED) - building - lacking
    if running or starting:
        where = f" at {words.plural(facts.sites, 'site')}" if facts.sites else ""
        parts.append(_at_pilots(running, starting) + where)
    if queued:
        parts.append(f"{words.plural(queued, 'job')} {'waits' if queued == 1 else 'wait'} for a pilot")
    if lacking:
        waits = "waits for its input" if lacking == 1 else "wait for their input"
        parts.append(f"{words.plural(lacking, 'job')} {waits} to be brought to the site")
    if moving:
        parts.append(facts.outgoing.of_jobs(moving))
    if building:
        waits = "waits for its library" if building == 1 else "wait for their library"
        parts.append(f"{words.plural(building, 'job')} {waits} to be built")
    wait = WAITS.get(facts.status, "")
    if facts.status == T.READY and facts.progress.working and not facts.progress.waiting:
        wait = ""  # all of it is in jobs: there is nothing left to make jobs of
    if facts.grows and not (facts.progress.waiting or facts.progress.working) and facts.status in _TAKES_MORE:
        wait = f"it waits for more files until the dataset {facts.grows} is closed"
    if facts.status == T.PENDING:
        wait = _lower_first(facts.error_dialog or facts.last_reason or "it waits for its next retry").rstrip(".")
    if wait:
        parts.append(wait)
    elif (
        not running and not starting and not queued and not lacking and not moving and not building and facts.waits_for
    ):
        parts.append(f"no job is queued: {_lower_first(facts.waits_for).rstrip('.')}")
    elif not parts:
        parts.append("no job has been made yet")
    line = head + "; ".join(parts) + "."
    if facts.status == T.EXHAUSTED and (facts.error_dialog or facts.last_reason):
        line += f" {_sentence(facts.error_dialog or facts.last_reason)}"
    return line


def _at_pilots(running: int, starting: int) -> str:
    starts = "starts" if starting == 1 else "start"
    if not running:
        return f"{words.plural(starting, 'job')} {starts}"
    runs = f"{words.plural(running, 'job')} {'runs' if running == 1 else 'run'}"
    return f"{runs} and {starting} {starts}" if starting else runs


def _ended(facts: TaskFacts, progress: str) -> str:
    why = facts.error_dialog or facts.last_reason
    if facts.status == T.DONE:
        return (progress or "all input was processed") + "."
    if facts.status in (T.BROKEN, T.ABORTED):
        otherwise = "it was killed" if facts.status == T.ABORTED else "it could not be started"
        return _sentence(why or otherwise, capital=False)
    text = f"{progress}." if progress else ""
    return f"{text} {_sentence(why)}".strip() if why else text or "it has ended."


def _sentence(text: str, *, capital: bool = True) -> str:
    clean = text.strip()
    clean = (clean[:1].upper() if capital else clean[:1]) + clean[1:]
    return clean if clean.endswith((".", "!", "?")) else f"{clean}."


def _lower_first(text: str) -> str:
    """The sentence to go on with, unless it begins with a name."""
    clean = text.strip()
    second = clean[1:2]
    return clean[:1].lower() + clean[1:] if second.islower() or second == " " else clean
