"""What a mail about a task says: a headline, what came of the work, its errors, and what may be done next. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jedisite import refusals
from jedisite.vocabulary.words import plural
from tasks_app.domain import job_refusal_codes
from tasks_app.domain.job_errors import PAYLOAD_FAILED, TRANS, JobError
from tasks_app.domain.states import TaskStatus
from tasks_app.params.clientwords import OPTIONS

T = TaskStatus
LONGEST_DETAIL = 300
LONGEST_COMMAND_LINE = 4000
SHOWN_SITES = 10

HEADLINES: Final[Mapping[str, str]] = {
    T.DONE: "is done",
    T.FINISHED: "is finished, but a part of its input was not processed",
    T.FAILED: "has failed",
    T.ABORTED: "was aborted",
    T.BROKEN: "is broken: it could not be run",
    T.EXHAUSTED: "has stopped and waits for your decision",
    T.PAUSED: "was paused by the system",
}
NEXT: Final[Mapping[str, tuple[str, ...]]] = {
    T.DONE: ("Nothing needs to be done.",),
    T.FINISHED: (
        "Look at the errors and correct their cause.",
        "Then retry the task: only files that failed run again.",
    ),
    T.FAILED: (
        "Look at the errors and correct their cause.",
        "Then retry the task: unprocessed files are tried again.",
        "To change its parameters, or if its input has changed, run it again (incexec).",
    ),
    T.ABORTED: ("If this was a mistake, retry the task: it continues with the remaining files.",),
    T.BROKEN: ("Correct the task's parameters, and submit the task again.",),
    T.EXHAUSTED: ("Retry the task to continue, or finish it to keep its outputs.",),
    T.PAUSED: ("Find out why its jobs fail, then resume the task, or kill it.",),
}
NEXT_WITHOUT_ERRORS: Final[Mapping[str, tuple[str, ...]]] = {
    T.FINISHED: ("To process the rest of its input, retry the task: only unprocessed files run again.",),
    T.FAILED: ("None of its jobs had an error. Retry the task, or run it again with changed parameters (incexec).",),
}
NEXT_WITHOUT_SITES: Final = (
    "To continue, run the task again (incexec) with other sites: those that it names no longer exist.",
)
FINISHED_SOON: Final = "Without a decision it will be finished with its present outputs."
NEXT_WHEN_STOPPED: Final = ("To process the rest of its input, retry the task: it continues with the remaining files.",)
COMMANDS: Final[Mapping[str, str]] = {
    T.FINISHED: "retry",
    T.FAILED: "retry",
    T.ABORTED: "retry",
    T.EXHAUSTED: "retry",
    T.PAUSED: "resume",
}
"""The command that is most likely wanted next."""
_SAID: Final[Mapping[str, str]] = {"retry": "Retry it", "resume": "Resume it"}
_MORE_MEMORY = "Ask for more memory (ramCount), or reduce what the payload needs."
_ADVICE: Final[Mapping[str, str]] = {
    "pilot:1098": "Make jobs smaller, or declare the disk space that they need (workDiskCount), if a queue offers as much.",
    "pilot:1104": "Make jobs smaller, or declare the disk space that they need (workDiskCount), if a queue offers as much.",
    "pilot:1150": "Find out what the payload waits for; if it normally writes nothing for a long time, set noLoopingCheck.",
    "pilot:1165": "Check in the log why the payload did not write the file, and whether the file has the name that you gave.",
    "pilot:1212": _MORE_MEMORY,
    "pilot:1213": refusals.get(job_refusal_codes.JOB_RAN_TOO_LONG).advice,
    "pilot:1221": "Give the output a name that no other job uses: the file that has it is kept.",
    "pilot:1235": _MORE_MEMORY,
    "jobdispatcher:100": refusals.get(job_refusal_codes.JOB_LOST_HEARTBEAT).advice,
    "ddm:201": "Check in the log whether the payload wrote all its outputs.",
}
PAYLOAD_ADVICE: Final = "Read the log of one of these jobs, or run the payload by hand on the job's input."


_PARAMETER: Final = re.compile(r"\b(ramCount|noLoopingCheck)\b")
"""Parameters that advice names, of those that prun has options for."""


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One error of a task: how many jobs met it, what it means, what a job said, and what helps ("" if unknown)."""

    jobs: int
    key: str
    sentence: str
    detail: str
    advice: str


@dataclass(frozen=True, slots=True)
class Output:
    dataset: str
    files: int
    events: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """Facts of a task when its state changed. Times are UTC; `jobs` and `sites` count jobs."""

    task_id: int
    name: str
    status: str
    reason: str
    what: str
    attempt: int
    submitted: datetime
    started: datetime | None
    ended: datetime | None
    files: int
    finished: int
    failed: int
    jobs: Mapping[str, int]
    sites: Mapping[str, int]
    errors: tuple[ErrorLine, ...] = ()
    outputs: tuple[Output, ...] = ()
    command_line: str = ""
    sites_gone: bool = False
    """None of the sites that it names exists any more."""
    stopped: bool = False
    """Somebody told it to finish before its end, so that it has no failure of its own."""
    never_finished: bool = False
    """It has disableAutoFinish: exhausted, it waits for a decision however long that takes."""
    from_client: bool = False
    """It was submitted by prun or its kin, whose users have pbook."""

    @property
    def headline(self) -> str:
        if self.stopped and self.status in (T.FINISHED, T.FAILED):
            return "was finished early" + ("" if self.finished else ", before any of its input was processed")
        return HEADLINES.get(self.status, f"is {self.status}")

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means all."""
        return self.finished * 100 // self.files if self.files else 0

    @property
    def next_steps(self) -> tuple[str, ...]:
        if self.sites_gone:
            return self._worded(NEXT_WITHOUT_SITES)
        if self.stopped and self.status in (T.FINISHED, T.FAILED):
            return NEXT_WHEN_STOPPED
        found = NEXT.get(self.status, ())
        if self.status == T.EXHAUSTED and not self.never_finished:
            found += (FINISHED_SOON,)
        return self._worded(found if self.errors else NEXT_WITHOUT_ERRORS.get(self.status, found))

    def _worded(self, steps: tuple[str, ...]) -> tuple[str, ...]:
        """In the words of whoever submitted it."""
        return (
            tuple(one.replace("incexec", "prun with the same --outDS") for one in steps) if self.from_client else steps
        )

    @property
    def command(self) -> str:
        return "" if self.sites_gone else COMMANDS.get(self.status, "")

    @property
    def client_command(self) -> str:
        """The same for PanDA's client; "" when that did not submit the task, or has no such command."""
        return f"pbook retry {self.task_id}" if self.from_client and self.command == "retry" else ""

    @property
    def command_said(self) -> str:
        """The command in words, such as "Retry it"."""
        return _SAID.get(self.command, "")

    @property
    def ran_for(self) -> str:
        """How long the task took from its first job to its end, in words; "" when it never ran."""
        if self.started is None or self.ended is None or self.ended < self.started:
            return ""
        minutes = int((self.ended - self.started).total_seconds()) // 60
        days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
        if days:
            return f"{days} d {hours} h"
        return f"{hours} h {rest} min" if hours else f"{rest} min" if rest else "less than a minute"

    @property
    def subject(self) -> str:
        """One line, whatever stands in the task's name."""
        files = f": {self.finished} of {plural(self.files, 'file')}" if self.files else ""
        early = self.stopped and self.status in (T.FINISHED, T.FAILED)
        became = "was finished early" if early else f"is {self.status}"
        return " ".join(f"Task {self.task_id} {self.name} {became}{files}".split())[:200]


def error_line(error: JobError, jobs: int, *, from_client: bool = False) -> ErrorLine:
    """An error in words, with what helps against it as far as that is known: in the options of prun for its users."""
    words = " ".join(error.detail.split())[:LONGEST_DETAIL]
    of_payload = error.component in ("exe", TRANS) or error.key == f"pilot:{PAYLOAD_FAILED}"
    advice = PAYLOAD_ADVICE if of_payload else _ADVICE.get(error.key, "")
    if from_client:
        advice = _PARAMETER.sub(lambda found: OPTIONS.get(found[0], found[0]), advice)
    return ErrorLine(jobs, error.key, error.sentence, words, advice)
