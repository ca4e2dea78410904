"""What the gates of a task look at, as plain values. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from jedisite import refusals
from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.findings import hours, in_a_row
from tasks_app.domain import job_refusal_codes, refusal_codes
from tasks_app.domain.states import JOB_OPEN, TASK_FINAL, TaskStatus
from tasks_app.transfers.rules.copy_waits import NO_COPIES, CopyWaits
from tasks_app.transfers.rules.under_way import NOTHING, UnderWay

ASKS_NOW_S: Final = 90.0
"""Free pilots ask several times a minute, and their calls are written seconds later: when none has for so long, none asks now."""
AT_WORK_S: Final = 3 * 3600
"""Pilots that run jobs ask for the next one when these end."""
LATE_PERIODS: Final = 10
"""An agent is late when it has not ended a pass for so many of its periods, and a minute at least."""
_CLOSED: Final = frozenset({"offline", "paused"})


@dataclass(frozen=True, slots=True)
class InputFact:
    """One input dataset that the work is cut by: its state and how many files jobs may still be made of.

    held   files that are not released for jobs yet
    next_look   of one that may still get files: when it is looked at next
    numbers   whether its files are only numbers, by which work is cut that reads none
    """

    name: str
    status: str
    files: int = 0
    files_left: int = 0
    missing: int = 0
    held: int = 0
    next_look: datetime | None = None
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class ParentFact:
    """The task whose outputs this one reads."""

    id: int
    status: str

    @property
    def has_ended(self) -> bool:
        return self.status in TASK_FINAL


@dataclass(frozen=True, slots=True)
class AgentFact:
    """The agent that is to look at the task. `took_s` and `items` are of its last pass; `due_s`: seconds until the next.

    pause   of a paused one: who paused it, since when and why, as far as that is kept
    """

    name: str
    paused: bool = False
    period_s: float = 1.0
    silent_s: float | None = None
    errors_in_a_row: int = 0
    last_error: str = ""
    took_s: float | None = None
    items: int | None = None
    due_s: float | None = None
    holder: str = ""
    pause: str = ""

    @property
    def last_pass(self) -> str:
        """How the last pass went, in words."""
        said = f"the agent {self.name} has never run"
        if self.silent_s is not None:
            said = f"the last pass of the agent {self.name} ended {max(self.silent_s, 0.0):.0f} s ago"
        if self.took_s is not None:
            said += f" (took {self.took_s:.2g} s, {plural(self.items or 0, 'item')})"
        return said

    @property
    def overdue(self) -> str:
        """That it is paused, or has run and does so no more; "" for others."""
        if self.paused:
            return f"the agent {self.name} is paused {self.pause}".rstrip()
        if self.silent_s is None or self.silent_s <= max(LATE_PERIODS * self.period_s, 60):
            return ""
        return f"the agent {self.name} ended its last pass {self.silent_s:.0f} s ago, but should run every {self.period_s:g} s"

    @property
    def halted(self) -> str:
        """That it does not work: it is overdue, or fails; "" for others."""
        if self.overdue or not self.errors_in_a_row:
            return self.overdue
        return f"the agent {self.name} has failed {in_a_row(self.errors_in_a_row)}: {self.last_error}"

    @property
    def next_pass(self) -> str:
        if self.holder:
            return f"a pass runs now on {self.holder}"
        if self.due_s is None:
            return ""
        return f"the next is due in {self.due_s:.0f} s" if self.due_s >= 1 else "the next is due now"


@dataclass(frozen=True, slots=True)
class Incoming:
    """Inputs on their way to a job or a task, and the agent that copies them; None where none are, or it is not known."""

    copies: CopyWaits = NO_COPIES
    mover: AgentFact | None = None

    def code(self, otherwise: str) -> str:
        """Of what has to be mended first; `otherwise` where the files come by themselves."""
        if self.mover is not None and self.mover.halted:
            return refusal_codes.AGENT_PAUSED if self.mover.paused else refusal_codes.AGENT_LATE
        return self.copies.code or otherwise

    @property
    def why(self) -> str:
        """What holds the files up, or how far they are; "" where nothing is on its way."""
        return (self.mover.halted if self.mover is not None else "") or self.copies.why

    def sentence(self, whose: str = "") -> str:
        """That files have not arrived, and why; "" where nothing is on its way."""
        left = self.copies.left_in_words(whose)
        return f"{left}: {self.why}" if left and self.why else left


NOTHING_COMES: Final = Incoming()


@dataclass(frozen=True, slots=True)
class Trouble:
    """An unexpected error for which an agent has left the task aside."""

    agent: str
    failures: int
    error: str
    since: datetime


@dataclass(frozen=True, slots=True)
class PilotFact:
    """Pilots of a site with activated jobs of the task. `silent_s`: seconds since one asked for a job; None when none did.

    waiting   activated jobs of the task; calls: of the last hours; workers: running or queued in the batch system
    status    of the queue, with the reason of whoever set it; "" when the queue no longer exists
    until     when the status ends (UTC); None: when somebody changes it
    known_s   seconds since the queue was added; None when nobody has noted that
    at_pilots jobs of anybody that pilots have there; called_at: when one asked last
    shut      why pilots get none of them, since a storage is full, broken or away; "" when they do
    """

    site: str
    waiting: int = 0
    silent_s: float | None = None
    calls: int = 0
    workers: int = 0
    status: str = "online"
    reason: str = ""
    known_s: float | None = None
    until: datetime | None = None
    at_pilots: int = 0
    called_at: datetime | None = None
    shut: str = ""

    @property
    def closed(self) -> str:
        """Why no job runs at the queue, whether pilots ask or not; "" when jobs do."""
        if not self.status:
            return "the queue no longer exists"
        if self.status not in _CLOSED:
            return self.shut
        until = f" until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else ""
        return f"the queue is {self.status}{until}" + (f" (“{self.reason.rstrip('.')}”)" if self.reason else "")

    @property
    def closed_code(self) -> str:
        """What kind of reason `closed` is."""
        by_storage = self.status and self.status not in _CLOSED
        return job_refusal_codes.JOBS_AT_SHUT_STORAGE if by_storage else refusal_codes.JOBS_AT_CLOSED_QUEUE

    @property
    def is_alive(self) -> bool:
        """Whether a pilot asks, or will once the jobs that pilots have there end."""
        return self.asks_now or (self.silent_s is not None and bool(self.at_pilots) and self.silent_s <= AT_WORK_S)

    @property
    def asks_now(self) -> bool:
        """Whether a pilot that was free asked so lately that the next call is a matter of seconds."""
        return self.silent_s is not None and self.silent_s <= ASKS_NOW_S

    @property
    def is_new(self) -> bool:
        """Whether the queue was added so lately that no pilot can have asked for long."""
        return self.known_s is not None and self.known_s < AT_WORK_S


PYTHON: Final = ".venv/bin/python manage.py"
"""How the programs of the site are started in its folder, as the README does it."""


def pilot_command(queue: str) -> str:
    """The line of a shell that runs one pilot of a queue, with a token of its own, in the folder of the site."""
    name = shlex.quote(queue)
    return f"JEDI_PILOT_TOKEN=$({PYTHON} token pilot --site {name}) {PYTHON} pilot --queue {name}"


def no_pilot_came(at: str, pilots: Sequence[PilotFact]) -> str:
    """What is true of queues for which no pilot has asked lately: a queue that was just added has had no time for it."""
    called = min((one for one in pilots if one.silent_s is not None), key=lambda one: one.silent_s or 0.0, default=None)
    if called is not None and called.silent_s is not None:
        since = f" (since {called.called_at:%Y-%m-%d %H:%M:%S} UTC)" if called.called_at else ""
        return f"no pilot has asked for jobs at {at} for {hours(called.silent_s)}{since}"
    new = [one.known_s for one in pilots if one.is_new and one.known_s is not None]
    silent = f"no pilot has asked for jobs at {at}"
    if not new:
        return f"{silent} for {AT_WORK_S // 3600} h"
    if len(new) < len(pilots):
        return f"{silent} for {AT_WORK_S // 3600} h, or since the queues were added"
    ago = hours(max(new))
    return (
        f"{silent} yet: it was added {ago} ago" if len(pilots) == 1 else f"{silent} yet: the first was added {ago} ago"
    )


@dataclass(frozen=True, slots=True)
class VerdictFact:
    """What a broker said last. `since`: when it said so first without a break; None: when it was asked last, `at`.

    advice   what would help, with the numbers of now; "" where the advice of the code is all there is
    """

    code: str
    sentence: str
    chosen: int
    at: datetime
    stopped: bool = False
    since: datetime | None = None
    advice: str = ""

    @property
    def is_throttle(self) -> bool:
        return self.stopped and refusals.get(self.code).group == "throttle"


@dataclass(frozen=True, slots=True)
class WhyFacts:
    """All that the gates look at. `jobs` by status; `pilots`: of the sites with activated jobs.

    stuck_since   since when it waits, however often it was tried meanwhile; None when it does not wait
    share_zero  the task's share, when its target is 0 and jobs of other shares wait where its own do
              and pilots ask now
    returns_to  of a pending task: the state in which it is tried again
    allowed   what the throttle says of a group of tasks that it lets pass
    rationed  whether it lets only so many jobs be made in a pass; ration_helps: which setting does, and what would be enough
    had_errors, sites_gone
              of a task that has ended: whether jobs of it failed, and the sites that it names when none of them exists
    nothing_left
              of a task that has ended: whether a retry is refused since it has no file to try again
    lost_to_it
              of a task that rests: which of its unprocessed files are lost and made again under other names; "" without any
    """

    status: str
    error_dialog: str = ""
    state_since: datetime | None = None
    next_check: datetime | None = None
    inputs: tuple[InputFact, ...] = ()
    agent: AgentFact | None = None
    claimed_by: str = ""
    nucleus: str = ""
    not_gathered: str = ""
    """Why its nucleus gathers none of its outputs; "" when it does."""
    outgoing: UnderWay = NOTHING
    throttle: VerdictFact | None = None
    task_verdict: VerdictFact | None = None
    verdict: VerdictFact | None = None
    jobs: Mapping[str, int] = field(default_factory=dict)
    pilots: tuple[PilotFact, ...] = ()
    parent: ParentFact | None = None
    allowed: str = ""
    rationed: bool = False
    ration_helps: str = ""
    trouble: Trouble | None = None
    now: datetime | None = None
    stuck_since: datetime | None = None
    had_errors: bool = False
    sites_gone: tuple[str, ...] = ()
    nothing_left: bool = False
    lost_to_it: str = ""
    share_zero: str = ""
    returns_to: str = ""
    goal: str = ""
    """How far it is from its goal; "" without one."""
    staging: str = ""
    """How many of its files are still to come from tape, and how fast they do; "" when none is."""
    from_tape: Incoming = NOTHING_COMES
    incoming: Incoming = NOTHING_COMES
    """What is copied from tape for the task, and to where its jobs wait for it."""
    gathered: Incoming = NOTHING_COMES
    """What its jobs have made and is copied to where it is gathered."""
    warned: str = ""
    """What was doubted of it when it was submitted, and of its input; only of one that is done."""

    def since(self, verdict: VerdictFact) -> datetime:
        """Since when the task waits for what a verdict says."""
        return self.stuck_since or verdict.since or verdict.at

    @property
    def passed_over(self) -> bool:
        """Whether the generator has made a whole pass since the task could get jobs, and others got what might be made."""
        agent, since = self.agent, self.state_since
        if not self.rationed or agent is None or agent.silent_s is None or self.now is None or since is None:
            return False
        return since < self.now - timedelta(seconds=agent.silent_s + (agent.took_s or 0.0))

    @property
    def open_jobs(self) -> int:
        return sum(n for status, n in self.jobs.items() if status in JOB_OPEN)

    @property
    def held(self) -> int:
        """Files that wait until scouts have shown what jobs need."""
        return sum(one.held for one in self.inputs) if self.status == TaskStatus.SCOUTING else 0

    @property
    def next_look(self) -> datetime | None:
        """When the next of the inputs that may still get files is looked at; None when there is no such input."""
        return min((one.next_look for one in self.inputs if one.next_look is not None), default=None)

    @property
    def reads_nothing(self) -> bool:
        """Whether the work is cut by numbers alone."""
        return all(one.numbers for one in self.inputs)

    @property
    def waits_for_jobs(self) -> bool:
        """Whether all input that may be used is in jobs, and some of these have not ended."""
        return bool(self.inputs) and not any(one.files_left for one in self.inputs) and self.open_jobs > 0
