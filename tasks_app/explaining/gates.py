"""What a task has to pass from its submission to running jobs, in order; the first "no" is why it waits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from brokerage_app.remedies import Remedy
from jedisite import refusals
from tasks_app import codes
from tasks_app.states import TASK_FINAL, TASK_GENERATING, TaskStatus

T = TaskStatus
Answer = Literal["yes", "no", "not asked", "not reached"]
LATE_PERIODS: Final = 10
"""An agent is late when it has not ended a pass for so many of its periods, and a minute at least."""
PILOT_SILENT_S: Final = 3 * 3600

AGENT_OF: Final[Mapping[str, str]] = {
    T.REGISTERED: "refiner", T.REREFINE: "refiner", T.DEFINED: "feeder", T.ASSIGNING: "task_broker", T.READY: "job_generator",
    T.RUNNING: "job_generator", T.SCOUTING: "job_generator", T.PENDING: "pending", T.PREPARED: "post_processor",
    T.PASSED: "post_processor", T.FINISHING: "post_processor", T.TOABORT: "commando", T.ABORTING: "commando",
    T.TORETRY: "commando", T.TOINCEXEC: "commando", T.TOREASSIGN: "commando",
}  # fmt: skip
AT_WORK: Final = frozenset({*AGENT_OF.values(), "merger", "adder", "libraries", "periodic"})
"""Agents without which a task does not get on; watch dogs are none."""
STAGING: Final = frozenset({T.STAGING, T.STAGED})
UNREFINED: Final = frozenset({T.REGISTERED, T.REREFINE, T.TOINCEXEC, T.TOPREPROCESS, T.PREPROCESSING})
ENDING: Final = frozenset({T.PREPARED, T.FINISHING, T.PASSED, T.TOABORT, T.ABORTING, T.TOBROKEN})
UNREAD: Final = frozenset({"registered", "defined", "toupdate", "pending"})


NOTHING_HELPS: Final = (
    "No single change was found that would let a site take its jobs: each refuses them for more than one reason. The list "
    "of sites says which; What if tries several changes at once."
)
ENDED: Final[Mapping[str, str]] = {
    T.DONE: codes.TASK_ALL_DONE, T.FAILED: codes.TASK_FAILED, T.BROKEN: codes.TASK_BROKEN, T.TOBROKEN: codes.TASK_BROKEN,
}  # fmt: skip
"""Why tasks at their end get no jobs, where it is more than that they have ended: by what may still be done with them."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One step with its answer. `code` and `sentence` say why not; of a "yes" the sentence says how it stands.

    remedies   changes that help, as deciding again has shown; None where nobody has tried any
    """

    name: str
    title: str
    answer: Answer
    code: str = ""
    sentence: str = ""
    since: datetime | None = None
    remedies: tuple[Remedy, ...] | None = None

    def __post_init__(self) -> None:
        if self.code:
            refusals.checked(self.code)

    @property
    def advice(self) -> str:
        if self.remedies:
            return " ".join(one.sentence for one in self.remedies)
        if self.remedies is not None and self.who != "nobody":
            return NOTHING_HELPS
        return refusals.get(self.code).advice if self.code else ""

    @property
    def who(self) -> str:
        if self.remedies:
            return self.remedies[0].who
        return refusals.get(self.code).who_can_fix if self.code else ""

    @property
    def severity(self) -> str:
        return refusals.get(self.code).severity if self.code else ""


@dataclass(frozen=True, slots=True)
class InputFact:
    """One input dataset that the work is cut by: its state and how many files jobs may still be made of."""

    name: str
    status: str
    files: int = 0
    files_left: int = 0
    missing: int = 0


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
    """The agent that is to look at the task. `took_s` and `items` are of its last pass; `due_s`: seconds until the next."""

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

    @property
    def last_pass(self) -> str:
        """How the last pass went, in words."""
        said = f"its last pass ended {self.silent_s:.0f} s ago" if self.silent_s is not None else "it has never run"
        if self.took_s is not None:
            said += f" (took {self.took_s:.2g} s, {self.items or 0} items)"
        return said

    @property
    def next_pass(self) -> str:
        if self.holder:
            return f"a pass runs now on {self.holder}"
        if self.due_s is None:
            return ""
        return f"the next is due in {self.due_s:.0f} s" if self.due_s >= 1 else "the next is due now"


@dataclass(frozen=True, slots=True)
class Trouble:
    """An unexpected error for which an agent has left the task aside."""

    agent: str
    failures: int
    error: str
    since: datetime


@dataclass(frozen=True, slots=True)
class PilotFact:
    """Pilots of a site with activated jobs of the task. `silent_s`: seconds since one called; None when none did.

    waiting   activated jobs of the task; calls: of the last hours; workers: running or queued in the batch system
    """

    site: str
    waiting: int = 0
    silent_s: float | None = None
    calls: int = 0
    workers: int = 0

    @property
    def is_alive(self) -> bool:
        return self.silent_s is not None and self.silent_s <= PILOT_SILENT_S


@dataclass(frozen=True, slots=True)
class VerdictFact:
    """What a broker said last; `group` is that of the code."""

    code: str
    sentence: str
    chosen: int
    at: datetime
    stopped: bool = False

    @property
    def is_throttle(self) -> bool:
        return self.stopped and refusals.get(self.code).group == "throttle"


@dataclass(frozen=True, slots=True)
class WhyFacts:
    """All that the gates look at. `jobs` by status; `pilots`: of the sites with activated jobs.

    allowed   what the throttle says of a group of tasks that it lets pass
    """

    status: str
    error_dialog: str = ""
    state_since: datetime | None = None
    next_check: datetime | None = None
    inputs: tuple[InputFact, ...] = ()
    agent: AgentFact | None = None
    claimed_by: str = ""
    nucleus: str = ""
    throttle: VerdictFact | None = None
    task_verdict: VerdictFact | None = None
    verdict: VerdictFact | None = None
    jobs: Mapping[str, int] = field(default_factory=dict)
    pilots: tuple[PilotFact, ...] = ()
    parent: ParentFact | None = None
    allowed: str = ""
    trouble: Trouble | None = None
    now: datetime | None = None


Ask = Callable[[WhyFacts], Gate]


def _turns(facts: WhyFacts) -> Gate:
    title, trouble = "Agents get on with it", facts.trouble
    if trouble is None or facts.status in TASK_FINAL:
        return Gate("turns", title, "yes", "", "no agent has left it aside")
    times = "once" if trouble.failures == 1 else f"{trouble.failures} times in a row"
    sentence = f"the agent {trouble.agent} has failed at it {times}, and tries again later: {trouble.error}"
    return Gate("turns", title, "no", codes.AGENT_FAILS, sentence, trouble.since)


def _state(facts: WhyFacts) -> Gate:
    def no(code: str, sentence: str) -> Gate:
        return Gate("state", "The state allows jobs", "no", code, sentence, facts.state_since)

    status = facts.status
    if status in ENDED:
        return no(ENDED[status], facts.error_dialog or f"the task is {status}")
    if status in TASK_FINAL:
        return no(codes.TASK_ENDED, facts.error_dialog or f"the task is {status}")
    if status == T.PAUSED:
        return no(codes.TASK_PAUSED, facts.error_dialog or "somebody paused it")
    if status == T.EXHAUSTED:
        return no(codes.TASK_STOPPED_BY_ITSELF, facts.error_dialog or "it stopped by itself")
    if status in ENDING:
        return no(codes.TASK_ENDING, facts.error_dialog or f"the task is {status}")
    return Gate("state", "The state allows jobs", "yes", "", f"the task is {status}", facts.state_since)


def _inputs(facts: WhyFacts) -> Gate:
    title = "The inputs are known"
    if facts.status in UNREFINED:
        return Gate("inputs", title, "no", codes.TASK_NOT_REFINED, f"the task is {facts.status}", facts.state_since)
    if facts.status in STAGING:
        sentence = facts.error_dialog or f"the task is {facts.status}"
        return Gate("inputs", title, "no", codes.INPUT_NOT_STAGED, sentence, facts.state_since)
    unread = [one for one in facts.inputs if one.status in UNREAD]
    parent = facts.parent
    if unread and parent is not None and not parent.has_ended:
        sentence = f"the parent task {parent.id}, which makes {unread[0].name}, is {parent.status}"
        return Gate("inputs", title, "no", codes.PARENT_NOT_FINISHED, sentence, facts.state_since)
    if unread:
        sentence = f"{unread[0].name} is {unread[0].status}"
        if len(unread) > 1:
            sentence += f", and {len(unread) - 1} more are not read"
        if facts.error_dialog:
            sentence += f": {facts.error_dialog}"
        return Gate("inputs", title, "no", codes.INPUT_NOT_READ, sentence, facts.state_since)
    left, files = sum(one.files_left for one in facts.inputs), sum(one.files for one in facts.inputs)
    if facts.inputs and not left:
        return Gate("inputs", title, "no", codes.INPUT_USED_UP, f"none of {files} files is left for another job")
    missing = sum(one.missing for one in facts.inputs)
    says = f"{left} of {files} files are left for jobs" if files else "the task needs no input"
    return Gate("inputs", title, "yes", "", f"{says}, {missing} are missing" if missing else says)


def _throttle(facts: WhyFacts) -> Gate:
    title = "Nothing throttles it"
    if facts.status == T.THROTTLED:
        return Gate("throttle", title, "no", codes.TASK_THROTTLED, facts.error_dialog, facts.state_since)
    for verdict in (facts.throttle, facts.verdict):
        if verdict is None or not verdict.is_throttle:
            continue
        return Gate("throttle", title, "no", verdict.code, verdict.sentence, verdict.at)
    return Gate("throttle", title, "yes", "", facts.allowed or "no limit on its work queue or share concerns it")


def _agent(facts: WhyFacts) -> Gate:
    title, agent = "An agent looks at it", facts.agent
    if agent is None:
        return Gate("agent", title, "not asked", "", f"no agent looks at tasks that are {facts.status}")
    if agent.paused:
        return Gate("agent", title, "no", codes.AGENT_LATE, f"the agent {agent.name} is paused")
    if agent.errors_in_a_row:
        sentence = f"the last {agent.errors_in_a_row} passes of {agent.name} failed, {agent.next_pass}: {agent.last_error}"
        return Gate("agent", title, "no", codes.AGENT_LATE, sentence)
    if agent.silent_s is None or agent.silent_s > max(LATE_PERIODS * agent.period_s, 60):
        ago = "has never run" if agent.silent_s is None else f"ended its last pass {agent.silent_s:.0f} s ago"
        sentence = f"the agent {agent.name} {ago}, and should run every {agent.period_s:g} s"
        return Gate("agent", title, "no", codes.AGENT_LATE, sentence)
    claimed = f"{facts.claimed_by} works on it" if facts.claimed_by else ""
    says = (f"{agent.name}: {agent.last_pass}", agent.next_pass, claimed)
    return Gate("agent", title, "yes", "", "; ".join(filter(None, says)))


def _nucleus(facts: WhyFacts) -> Gate:
    title = "Its outputs have a place to be gathered"
    if facts.status != T.ASSIGNING:
        says = f"they are gathered at {facts.nucleus}" if facts.nucleus else "its outputs stay where they are made"
        return Gate("nucleus", title, "yes" if facts.nucleus else "not asked", "", says)
    verdict = facts.task_verdict
    if verdict is None or not verdict.code:
        return Gate("nucleus", title, "no", codes.NO_NUCLEUS_YET, facts.error_dialog, facts.state_since)
    return Gate("nucleus", title, "no", verdict.code, verdict.sentence, verdict.at)


def _sites(facts: WhyFacts) -> Gate:
    title, verdict = "A site takes its jobs", facts.verdict
    if verdict is None:
        if facts.status == T.PENDING:
            return Gate("sites", title, "no", codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
        if not facts.jobs and facts.status in TASK_GENERATING:
            due = f": {facts.agent.last_pass}; {facts.agent.next_pass}" if facts.agent is not None else ""
            sentence = f"no broker has looked at it yet{due.rstrip('; ')}"
            return Gate("sites", title, "no", codes.NOT_LOOKED_AT, sentence, facts.state_since)
        return Gate("sites", title, "not asked", "", "the broker has not been asked yet")
    if not verdict.chosen and not verdict.is_throttle:
        return Gate("sites", title, "no", verdict.code, verdict.sentence, verdict.at)
    if facts.status == T.PENDING:
        return Gate("sites", title, "no", codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
    return Gate("sites", title, "yes", "", verdict.sentence, verdict.at)


def _activated(facts: WhyFacts) -> Gate:
    title, jobs = "Its jobs are ready to run", facts.jobs
    at_pilot = sum(jobs.get(s, 0) for s in ("activated", "sent", "starting", "running"))
    if at_pilot:
        return Gate("activated", title, "yes", "", f"{at_pilot} jobs are activated or beyond")
    waiting = sum(jobs.get(s, 0) for s in ("defined", "pending", "waiting", "assigned", "throttled"))
    if waiting:
        return Gate("activated", title, "no", codes.JOBS_NOT_ACTIVATED, f"{waiting} jobs wait, none is activated")
    return Gate("activated", title, "no", codes.NO_JOB_MADE, "no job of the task is open")


def _pilots(facts: WhyFacts) -> Gate:
    title = "Pilots ask for them"
    if not facts.pilots:
        return Gate("pilots", title, "not asked", "", "no job waits for a pilot")
    alive = [one for one in facts.pilots if one.is_alive]
    if not alive:
        named = ", ".join(sorted(one.site for one in facts.pilots)[:3])
        sentence = (
            f"no pilot has asked in the last {PILOT_SILENT_S // 3600} hours at {len(facts.pilots)} sites with jobs ({named}); "
            f"{sum(one.workers for one in facts.pilots)} workers run or wait there"
        )
        return Gate("pilots", title, "no", codes.NO_PILOT_CAME, sentence)
    sentence = f"pilots called at {len(alive)} of {len(facts.pilots)} sites with jobs"
    most = max(alive, key=lambda one: (one.calls, one.site))
    if most.calls:
        sentence += f": {sum(one.calls for one in alive)} calls lately, {most.calls} of them at {most.site}"
    return Gate("pilots", title, "yes", "", sentence)


def _running(facts: WhyFacts) -> Gate:
    title, running = "Its payload runs", facts.jobs.get("running", 0)
    if running:
        return Gate("running", title, "yes", "", f"{running} jobs run")
    waiting = facts.jobs.get("activated", 0)
    return Gate("running", title, "no", codes.NO_JOB_RUNS, f"{waiting} jobs are activated, none runs")


GATES: Final[tuple[Ask, ...]] = (
    _turns, _state, _inputs, _throttle, _agent, _nucleus, _sites, _activated, _pilots, _running,
)  # fmt: skip
"""The order in which a task passes them. Running jobs show that all before were passed once; new jobs pass them again."""


def walk(facts: WhyFacts) -> tuple[Gate, ...]:
    """All gates in order. Behind the first "no" the others are marked as not reached, but keep what they say."""
    found: list[Gate] = []
    stopped = False
    for ask in GATES:
        gate = ask(facts)
        if stopped and gate.answer == "no":
            gate = Gate(gate.name, gate.title, "not reached", gate.code, gate.sentence, gate.since)
        stopped = stopped or gate.answer == "no"
        found.append(gate)
    return tuple(found)


def first_no(gates: tuple[Gate, ...]) -> Gate | None:
    return next((gate for gate in gates if gate.answer == "no"), None)
