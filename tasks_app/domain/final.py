"""The final status of a task and the sentence about its errors. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.domain import attempt_refusal_codes, refusal_codes
from tasks_app.domain.job_errors import JobError
from tasks_app.domain.reasons import Reason
from tasks_app.domain.states import TaskStatus

MOST_ERRORS = 5
"""Errors that are told one by one."""
MEMORY_ERRORS: Final = frozenset({"pilot:1212", "pilot:1235"})
PRODUCTION_LABELS: Final = frozenset({"managed", "test"})
FULL_GOAL = 1000
"""Per mille; a task without a goal wants everything."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A task that nobody named as the parent, that made an input and did not end done. `how`: the end of a sentence on that.

    later    it ended after the task that reads the input was submitted, which waited for it as for a parent
    """

    how: str
    later: bool


@dataclass(frozen=True, slots=True)
class Books:
    """Files of the master inputs (removed datasets excluded), how many finished, and what the task asked for.

    parent            status of the parent task if there is one
    mutable           some master input may still get files
    events            events of the master inputs with those used; 0 when they are not counted
    goal              per mille of the input that is to succeed; None is all of it
    fail_unreached    FG: below its goal the task has failed
    use_exhausted     UX of a production task: below its goal it waits for somebody instead of being finished
    passed            the task was told to finish, or its time as exhausted is over: what is there is taken
    allow_empty       AE: without any file the task is done
    reads_parent      the parent makes some of the input
    missing           why some of the files were never there, as a part of a sentence
    removed           who took all files out of its input, as a sentence
    maker             what another task has left of an input that it makes
    given_up          events of files that were processed without them (allowPartialFinish)
    left_out          files of jobs that would have been incomplete (skipShortOutput); mostly they are no input any more
    """

    files: int
    finished: int
    parent: str | None = None
    mutable: bool = False
    events: int = 0
    events_used: int = 0
    goal: int | None = None
    fail_unreached: bool = False
    use_exhausted: bool = False
    passed: bool = False
    allow_empty: bool = False
    reads_parent: bool = True
    missing: str = ""
    removed: str = ""
    maker: Maker | None = None
    given_up: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class FinalVerdict:
    """The status with its reason. Children are woken in either case; those of an exhausted task may go on."""

    status: TaskStatus
    reason: Reason


_NO_JOB: Final = ", without a job"
"""How sentences end on a parent that was not done."""
UNMADE: Final = ". Retry that one, and once it is done"
"""Stands in what is said of a task of which another one left some input unmade."""
_HOW: Final = "Run again on its page, prun with the same --outDS, or incexec"
_PARENT_FAILED = (TaskStatus.FAILED, TaskStatus.BROKEN, TaskStatus.ABORTED)


def completeness(books: Books) -> int:
    """Per mille of the input that was processed, rounded down: by events where they are counted, else by files."""
    done, total = (books.events_used, books.events) if books.events > 0 else (books.finished, books.files)
    return min(done * 1000 // total, 1000) if total > 0 else 0


def goal_reached(books: Books) -> bool:
    """Whether the task's goal, or everything without one, was reached."""
    return completeness(books) >= (FULL_GOAL if books.goal is None else books.goal)


def final_verdict(books: Books) -> FinalVerdict:
    """How a task ends; the first rule that applies (lifecycle 6.4).

    done: every file was processed; finished: some were, or some events were given up; failed: none was. With a parent
    that did not reach done, a complete task is only finished, since its input may be incomplete; with a parent that
    failed it has failed. One that waited for another task which makes its input, and was not done, is finished, too. A
    task that would be finished below its goal is exhausted if it asked for that and was not told to finish, and has
    failed if it asked for that.
    """
    verdict = _by_files(books)
    if verdict.status != TaskStatus.FINISHED or goal_reached(books):
        return verdict
    reached = completeness(books) / 10
    rest = f"; {books.missing}" if books.missing else ""
    wanted = (FULL_GOAL if books.goal is None else books.goal) / 10
    missed = Reason(
        refusal_codes.TASK_GOAL_MISSED, f"{reached:g} % of the input was processed, the goal is {wanted:g} %{rest}"
    )
    if books.use_exhausted and not books.passed:
        return FinalVerdict(TaskStatus.EXHAUSTED, missed)
    if books.fail_unreached:
        return FinalVerdict(TaskStatus.FAILED, missed)
    return verdict


def _by_files(books: Books) -> FinalVerdict:
    words = f"{books.finished} of {plural(books.files, 'input file was', 'input files were')} processed"
    if books.missing:
        words += f"; {books.missing}"
    if books.given_up:
        words += f", {plural(books.given_up, 'event was', 'events were')} given up"
    if books.left_out:
        jobs = "its job" if books.left_out == 1 else "their jobs"
        words += f"; {plural(books.left_out, 'was', 'were')} left out, as {jobs} would have been incomplete (skipShortOutput)"
    words = books.removed or words
    if books.finished == 0 and not (books.files == 0 and books.allow_empty):
        return FinalVerdict(TaskStatus.FAILED, Reason(refusal_codes.TASK_NONE_DONE, words))
    if books.finished < books.files:
        return FinalVerdict(TaskStatus.FINISHED, Reason(refusal_codes.TASK_SOME_DONE, words))
    if books.given_up:
        return FinalVerdict(TaskStatus.FINISHED, Reason(attempt_refusal_codes.TASK_EVENTS_GIVEN_UP, words))
    if books.parent in _PARENT_FAILED:
        return _with_its_parent(TaskStatus.FAILED, words, books)
    if books.parent is not None and books.parent != TaskStatus.DONE:
        return _with_its_parent(TaskStatus.FINISHED, words, books)
    if books.mutable:
        return FinalVerdict(
            TaskStatus.FINISHED, Reason(refusal_codes.TASK_PARENT_INCOMPLETE, f"{words}; more files may still be added")
        )
    if books.maker is not None:
        said = f"{words}; {books.maker.how}{UNMADE}, run this one again ({_HOW})"
        status = TaskStatus.FINISHED if books.maker.later else TaskStatus.DONE
        return FinalVerdict(status, Reason(refusal_codes.TASK_PARENT_INCOMPLETE, said))
    return FinalVerdict(TaskStatus.DONE, Reason(refusal_codes.TASK_ALL_DONE, words))


def _with_its_parent(status: TaskStatus, words: str, books: Books) -> FinalVerdict:
    """The end of a task of which all that there is was processed, and which is not done for its parent."""
    if books.reads_parent:
        return FinalVerdict(
            status,
            Reason(refusal_codes.TASK_PARENT_INCOMPLETE, f"{words}; the parent task was {books.parent} at that time"),
        )
    parent = f"its parent task, which makes none of its input, was {books.parent} at that time"
    why = f"it is {status} and not done only because {parent}"
    then = f"once the parent task is done, this one is done too{_NO_JOB}"
    if status == TaskStatus.FAILED:
        then = f"once the parent task is done, run this one again ({_HOW}): it is then done{_NO_JOB}"
    return FinalVerdict(status, Reason(refusal_codes.TASK_PARENT_NOT_DONE, f"{words}; {why}; {then}"))


def without_parent(dialog: str | None) -> str | None:
    """What the page of a task has to say once its parent is done: the rest, behind the sentence on that."""
    return (dialog or "").partition(_NO_JOB)[2].removeprefix(". ") or None


def error_summary(errors: Iterable[tuple[JobError, int]], status: str, merging: int = 0) -> str | None:
    """One sentence from errors and how many jobs have each, and how many of all were to merge outputs; None when no job failed.

    Each job is one attempt at its files, so the number may be above that of the files.
    """
    rows = list(errors)
    if not rows:
        return None
    total = sum(jobs for _, jobs in rows)
    told = (
        (jobs, error.key, (error.detail or "no text").strip()[:200].rstrip(".")) for error, jobs in rows[:MOST_ERRORS]
    )
    parts = [f"{jobs} × {key} ({'the last: ' if jobs > 1 else ''}{detail})" for jobs, key, detail in told]
    if others := sum(jobs for _, jobs in rows[MOST_ERRORS:]):
        parts.append(f"{others} × other errors")
    failed = f"{plural(total, 'attempt')} failed"
    if merging:
        failed += (
            f", {'all' if merging >= total else merging} of them to merge outputs" if total > 1 else " to merge outputs"
        )
    ending = "; all files were processed in the end" if status == TaskStatus.DONE else ""
    if status != TaskStatus.DONE and any(error.key in MEMORY_ERRORS for error, _ in rows):
        ending = "; ask for more memory than that (ramCount), or reduce what the payload needs"
    return f"{failed}: {'; '.join(parts)}{ending}"
