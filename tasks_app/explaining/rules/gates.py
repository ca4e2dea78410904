"""What a task has to pass from its submission to running jobs, in order; the first "no" is why it waits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from brokerage_app.advice.task_remedies import Remedy
from jedisite import refusals
from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.findings import hours, in_a_row, waits
from tasks_app.domain import refusal_codes
from tasks_app.domain.final import UNMADE
from tasks_app.domain.states import COMMANDS, TASK_FINAL, TASK_GENERATING, TASK_SEEKS_INPUT, TaskCommand, TaskStatus
from tasks_app.domain.turns import AGENT_OF
from tasks_app.explaining.rules.wait_facts import AgentFact, WhyFacts, no_pilot_came, pilot_command

T = TaskStatus
Answer = Literal["yes", "no", "not asked", "not reached"]
LATE_PERIODS: Final = 10
"""An agent is late when it has not ended a pass for so many of its periods, and a minute at least."""

AT_WORK: Final = frozenset({*AGENT_OF.values(), "merger", "adder", "libraries", "periodic"})
"""Agents without which a task does not get on; watch dogs are none."""
STAGING: Final = frozenset({T.STAGING, T.STAGED})
UNREFINED: Final = frozenset({T.REGISTERED, T.REREFINE, T.TOINCEXEC, T.TOPREPROCESS, T.PREPROCESSING})
ENDING: Final = frozenset({T.PREPARED, T.FINISHING, T.PASSED, T.TOABORT, T.ABORTING, T.TOBROKEN})
UNREAD: Final = frozenset({"registered", "defined", "toupdate", "pending"})


NOTHING_HELPS: Final = "No single change was found that would let a site take its jobs. "
"""Where changes were tried at all sites; else LITTLE_TRIED."""
LITTLE_TRIED: Final = (
    "No change that was tried lets a site take its jobs; on a grid of this size none was tried at {}. "
)
LOOK: Final = "The list of sites says why each refuses them; What if tries several changes at once."
ENDED: Final[Mapping[str, str]] = {
    T.DONE: refusal_codes.TASK_ALL_DONE,
    T.FAILED: refusal_codes.TASK_FAILED,
    T.BROKEN: refusal_codes.TASK_BROKEN,
    T.TOBROKEN: refusal_codes.TASK_BROKEN,
}
"""Why tasks at their end get no jobs, where it is more than that they have ended: by what may still be done with them."""
WITH_ERRORS: Final[Mapping[str, str]] = {
    T.FAILED: refusal_codes.TASK_FAILED_WITH_ERRORS,
    T.FINISHED: refusal_codes.TASK_SOME_DONE,
}
RUNS_AGAIN: Final = COMMANDS[TaskCommand.INCEXEC].accepted - {T.DONE}
"""States of tasks that may be told to run again, and that need their sites for it."""


@dataclass(frozen=True, slots=True)
class Gate:
    """One step with its answer. `code` and `sentence` say why not; of a "yes" the sentence says how it stands.

    remedies   changes that help, as deciding again has shown; None where nobody has tried any
    untried    sites at which none was tried
    helps      what would help, with the numbers of now; "" where the advice of the code is all there is
    command    what helps when it is run in a shell on the machine of the site; "" where nothing does
    """

    name: str
    title: str
    answer: Answer
    code: str = ""
    sentence: str = ""
    since: datetime | None = None
    remedies: tuple[Remedy, ...] | None = None
    untried: int = 0
    command: str = ""
    helps: str = ""

    def __post_init__(self) -> None:
        if self.code:
            refusals.checked(self.code)

    @property
    def advice(self) -> str:
        if self.remedies:
            return " ".join(one.sentence for one in self.remedies)
        if self.remedies is not None and self.who != "nobody":
            # What a site has to publish no what-if can change: there the advice of the code is all there is.
            said = refusals.get(self.code) if self.code else None
            nothing = LITTLE_TRIED.format(plural(self.untried, "site")) if self.untried else NOTHING_HELPS
            first = f"{said.advice} " if said is not None and said.group == "software" else ""
            return f"{first}{nothing}{LOOK}"
        return self.helps or (refusals.get(self.code).advice if self.code else "")

    @property
    def who(self) -> str:
        if self.remedies:
            return self.remedies[0].who
        if self.helps:
            return "expert"
        return refusals.get(self.code).who_can_fix if self.code else ""

    @property
    def severity(self) -> str:
        return refusals.get(self.code).severity if self.code else ""


Ask = Callable[[WhyFacts], Gate]


def _turns(facts: WhyFacts) -> Gate:
    title, trouble = "Agents get on with it", facts.trouble
    if facts.status in TASK_FINAL:
        return Gate("turns", title, "yes", "", "no agent has left it aside")
    agent = facts.agent if not facts.waits_for_jobs else None
    late = _overdue(agent) if agent is not None else ""
    if trouble is None and agent is not None and late:
        # Said first: what is known of the other gates is from before.
        return Gate(
            "turns", title, "no", refusal_codes.AGENT_PAUSED if agent.paused else refusal_codes.AGENT_LATE, late
        )
    if trouble is None:
        return Gate("turns", title, "yes", "", "no agent has left it aside")
    times = in_a_row(trouble.failures)
    sentence = f"the agent {trouble.agent} has failed at it {times}, and tries again later: {trouble.error}"
    return Gate("turns", title, "no", refusal_codes.AGENT_FAILS, sentence, trouble.since)


def _state(facts: WhyFacts) -> Gate:
    def no(code: str, sentence: str) -> Gate:
        return Gate("state", "The state allows jobs", "no", code, sentence, facts.state_since)

    status = facts.status
    if status in RUNS_AGAIN and facts.sites_gone:
        gone = (
            f"{', '.join(facts.sites_gone[:NAMED])} {'does' if len(facts.sites_gone) == 1 else 'do'} not exist any more"
        )
        return no(refusal_codes.TASK_SITES_GONE, f"{facts.error_dialog or f'the task is {status}'}; {gone}")
    if facts.nothing_left:
        return no(refusal_codes.TASK_NOTHING_LEFT, facts.error_dialog or f"the task is {status}")
    if facts.had_errors and status in WITH_ERRORS:
        return no(WITH_ERRORS[status], facts.error_dialog or f"the task is {status}")
    if status == T.DONE and UNMADE in facts.error_dialog:
        return no(refusal_codes.TASK_PARENT_INCOMPLETE, facts.error_dialog)
    if facts.warned:
        said = facts.error_dialog or f"the task is {status}"
        return no(
            refusal_codes.TASK_DONE_AND_WARNED,
            f"{said.rstrip('.')}. When it was submitted, the site warned: {facts.warned}",
        )
    if status in ENDED:
        return no(ENDED[status], facts.error_dialog or f"the task is {status}")
    if status in TASK_FINAL:
        return no(refusal_codes.TASK_ENDED, facts.error_dialog or f"the task is {status}")
    if status == T.PAUSED:
        return no(refusal_codes.TASK_PAUSED, facts.error_dialog or "somebody paused it")
    if status == T.EXHAUSTED:
        return no(refusal_codes.TASK_STOPPED_BY_ITSELF, facts.error_dialog or "it stopped by itself")
    if status in ENDING:
        return no(refusal_codes.TASK_ENDING, facts.error_dialog or f"the task is {status}")
    return Gate("state", "The state allows jobs", "yes", "", f"the task is {status}", facts.state_since)


def _inputs(facts: WhyFacts) -> Gate:
    title = "The inputs are known"
    if facts.status in UNREFINED:
        return Gate(
            "inputs", title, "no", refusal_codes.TASK_NOT_REFINED, f"the task is {facts.status}", facts.state_since
        )
    if facts.status in STAGING:
        sentence = facts.error_dialog or f"the task is {facts.status}"
        return Gate("inputs", title, "no", refusal_codes.INPUT_NOT_STAGED, sentence, facts.state_since)
    unread = [one for one in facts.inputs if one.status in UNREAD]
    parent = facts.parent
    if unread and parent is not None and not parent.has_ended:
        sentence = f"the parent task {parent.id}, which makes {unread[0].name}, is {parent.status}"
        return Gate("inputs", title, "no", refusal_codes.PARENT_NOT_FINISHED, sentence, facts.state_since)
    if unread:
        sentence = f"{unread[0].name} is not read yet"
        if len(unread) > 1:
            sentence += f", and {plural(len(unread) - 1, 'more is', 'more are')} not read"
        if facts.error_dialog:
            sentence += f": {facts.error_dialog}"
        return Gate("inputs", title, "no", refusal_codes.INPUT_NOT_READ, sentence, facts.state_since)
    if facts.returns_to in TASK_SEEKS_INPUT:
        waits_for_parent = parent is not None and not parent.has_ended
        code = refusal_codes.PARENT_NOT_FINISHED if waits_for_parent else refusal_codes.INPUT_NOT_READ
        return Gate(
            "inputs", title, "no", code, facts.error_dialog or "its input is looked for again", facts.state_since
        )
    left, files = sum(one.files_left for one in facts.inputs), sum(one.files for one in facts.inputs)
    if facts.inputs and not left:
        return _none_left(facts, title, files)
    missing = sum(one.missing for one in facts.inputs)
    units = ("part of the work is", "parts of the work are") if facts.reads_nothing else ("file is", "files are")
    says = f"{left} of {plural(files, *units)} left for jobs" if files else "the task needs no input"
    return Gate("inputs", title, "yes", "", f"{says}, {plural(missing, 'is', 'are')} missing" if missing else says)


def _none_left(facts: WhyFacts, title: str, files: int) -> Gate:
    """No file is left for another job: what the task waits for is said of its jobs, when it has any."""
    if facts.waits_for_jobs:
        return Gate("inputs", title, "yes", "", f"{_all_in_jobs(files - facts.held)} in jobs or done")
    if facts.held:
        sentence = f"the scouts have ended and are looked at next; {waits(facts.held, 'file')} for that"
        return Gate("inputs", title, "no", refusal_codes.SCOUTS_GO_FIRST, sentence)
    if facts.next_look is not None:
        return Gate(
            "inputs", title, "no", refusal_codes.INPUT_GROWS, _awaited(facts, facts.next_look, files), facts.state_since
        )
    return Gate(
        "inputs", title, "no", refusal_codes.INPUT_USED_UP, f"none of {plural(files, 'file')} is left for another job"
    )


def _awaited(facts: WhyFacts, next_look: datetime, files: int) -> str:
    """What the feeder has said of inputs that may still get files, and when it looks again."""
    held = sum(one.held for one in facts.inputs)
    said = f"{waits(held, 'file')} for more files, or until no more are to come"
    if not held:
        said = (
            f"none of {plural(files, 'file')} is left; more may come"
            if files
            else "the input has no files yet; some may come"
        )
    if facts.status == T.DEFINED and facts.error_dialog:
        said = facts.error_dialog
    is_due = facts.now is not None and next_look <= facts.now
    return f"{said}; the next look is {'due now' if is_due else f'at {next_look:%H:%M:%S} UTC'}"


def _all_in_jobs(files: int) -> str:
    return "the only file that may be used is" if files == 1 else f"all {files} files that may be used are"


def _throttle(facts: WhyFacts) -> Gate:
    title = "Nothing throttles it"
    if facts.status == T.THROTTLED:
        return Gate("throttle", title, "no", refusal_codes.TASK_THROTTLED, facts.error_dialog, facts.state_since)
    for verdict in (facts.throttle, facts.verdict):
        if verdict is None or not verdict.is_throttle:
            continue
        return Gate(
            "throttle", title, "no", verdict.code, verdict.sentence, verdict.since or verdict.at, helps=verdict.advice
        )
    return Gate("throttle", title, "yes", "", facts.allowed or "no limit on its work queue or share concerns it")


def _agent(facts: WhyFacts) -> Gate:
    title, agent = "An agent looks at it", facts.agent
    if agent is None:
        return Gate("agent", title, "not asked", "", f"no agent looks at tasks that are {facts.status}")
    overdue = _overdue(agent)
    if agent.paused:
        return Gate("agent", title, "no", refusal_codes.AGENT_PAUSED, overdue)
    if agent.errors_in_a_row:
        failed = f"the agent {agent.name} has failed {in_a_row(agent.errors_in_a_row)}"
        sentence = f"{', '.join(filter(None, (failed, agent.next_pass)))}: {agent.last_error}"
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, sentence)
    if agent.silent_s is None:
        sentence = f"the agent {agent.name} has never run, and should run every {agent.period_s:g} s"
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, sentence)
    if overdue:
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, overdue)
    claimed = f"{facts.claimed_by} works on it" if facts.claimed_by else ""
    says = (agent.last_pass, agent.next_pass, claimed)
    return Gate("agent", title, "yes", "", "; ".join(filter(None, says)))


def _overdue(agent: AgentFact) -> str:
    """That an agent is paused, or has run and does so no more; "" for others."""
    if agent.paused:
        return f"the agent {agent.name} is paused {agent.pause}".rstrip()
    if agent.silent_s is None or agent.silent_s <= max(LATE_PERIODS * agent.period_s, 60):
        return ""
    return f"the agent {agent.name} ended its last pass {agent.silent_s:.0f} s ago, and should run every {agent.period_s:g} s"


def _nucleus(facts: WhyFacts) -> Gate:
    title = "Its outputs have a place to be gathered"
    if facts.status != T.ASSIGNING:
        says = f"they are gathered at {facts.nucleus}" if facts.nucleus else "its outputs stay where they are made"
        return Gate("nucleus", title, "yes" if facts.nucleus else "not asked", "", says)
    verdict = facts.task_verdict
    if verdict is None or not verdict.code:
        return Gate("nucleus", title, "no", refusal_codes.NO_NUCLEUS_YET, facts.error_dialog, facts.state_since)
    return Gate("nucleus", title, "no", verdict.code, verdict.sentence, facts.since(verdict))


def _sites(facts: WhyFacts) -> Gate:
    title, verdict = "A site takes its jobs", facts.verdict
    if verdict is None:
        if facts.status == T.PENDING:
            return Gate("sites", title, "no", refusal_codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
        if not facts.jobs and facts.status in TASK_GENERATING:
            if facts.passed_over:
                sentence = f"{facts.allowed.rstrip('.')}; tasks that come before it have had them so far"
                return Gate(
                    "sites",
                    title,
                    "no",
                    refusal_codes.JOBS_RATIONED,
                    sentence,
                    facts.state_since,
                    helps=facts.ration_helps,
                )
            due = f": {facts.agent.last_pass}; {facts.agent.next_pass}" if facts.agent is not None else ""
            sentence = f"no broker has looked at it yet{due.rstrip('; ')}"
            return Gate("sites", title, "no", refusal_codes.NOT_LOOKED_AT, sentence, facts.state_since)
        return Gate("sites", title, "not asked", "", "the broker has not been asked yet")
    if not verdict.chosen and not verdict.is_throttle:
        return Gate("sites", title, "no", verdict.code, verdict.sentence, facts.since(verdict))
    if facts.status == T.PENDING:
        return Gate("sites", title, "no", refusal_codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
    return Gate("sites", title, "yes", "", verdict.sentence, verdict.since or verdict.at)


def _of_new_jobs(ask: Ask) -> Ask:
    """A gate that only new jobs have to pass: not asked when all that may be used is in jobs."""

    def asked(facts: WhyFacts) -> Gate:
        gate = ask(facts)
        if not facts.waits_for_jobs or gate.answer == "yes":
            return gate
        return Gate(gate.name, gate.title, "not asked", "", "no new job is to be made now")

    return asked


def _activated(facts: WhyFacts) -> Gate:
    title, jobs = "Its jobs are ready to run", facts.jobs
    beyond = sum(jobs.get(s, 0) for s in ("activated", *_STARTED, *_ENDED_THERE))
    if beyond:
        return Gate("activated", title, "yes", "", f"{plural(beyond, 'job')} {_is(beyond)} activated or beyond")
    waiting = sum(jobs.get(s, 0) for s in ("defined", "pending", "waiting", "assigned", "throttled"))
    if waiting:
        sentence = f"{waits(waiting, 'job')}, none is activated"
        return Gate("activated", title, "no", refusal_codes.JOBS_NOT_ACTIVATED, sentence)
    sentence = "no job of the task is open"
    if facts.status in TASK_GENERATING and facts.verdict is not None and facts.verdict.chosen and facts.error_dialog:
        sentence += f": {facts.error_dialog}"
    return Gate("activated", title, "no", refusal_codes.NO_JOB_MADE, sentence)


def at_queues(facts: WhyFacts) -> Gate:
    """The queues at which its activated jobs wait run jobs."""
    title, closed = "Their queues run jobs", [one for one in facts.pilots if one.closed]
    if not facts.pilots:
        return Gate("queues", title, "not asked", "", "no job waits for a pilot")
    waiting = sum(one.waiting for one in closed)
    where = "; ".join(f"at {one.site}: {one.closed}" for one in closed[:NAMED])
    if len(closed) == 1:
        where = f"at {closed[0].site}: {closed[0].closed}"
    elif closed:
        more = f"; and at {len(closed) - NAMED} more" if len(closed) > NAMED else ""
        where = f"at {len(closed)} queues that run none: {where}{more}"
    sentence = f"{waits(waiting, 'job')} {where}" if closed else "all of them"
    if len(closed) < len(facts.pilots):
        return Gate("queues", title, "yes", "", sentence)
    started = sum(facts.jobs.get(s, 0) for s in _STARTED)
    if started:
        sentence += f"; {plural(started, 'other job')} {_has(started)} started"
    return Gate("queues", title, "no", refusal_codes.JOBS_AT_CLOSED_QUEUE, sentence)


def by_pilots(facts: WhyFacts) -> Gate:
    title, open_to = "Pilots ask for them", [one for one in facts.pilots if not one.closed]
    if not open_to:
        return Gate("pilots", title, "not asked", "", "no job waits for a pilot at a queue that runs jobs")
    alive = [one for one in open_to if one.is_alive]
    if not alive:
        named = sorted(one.site for one in open_to)
        at = named[0] if len(named) == 1 else f"{len(named)} queues ({', '.join(named[:NAMED])})"
        jobs, workers = sum(one.waiting for one in open_to), sum(one.workers for one in open_to)
        sentence = (
            f"{no_pilot_came(at, open_to)}; {waits(jobs, 'job')} there, "
            f"{plural(workers, 'worker')} {'runs or waits' if workers == 1 else 'run or wait'}"
        )
        most = max(open_to, key=lambda one: (one.waiting, one.site))
        return Gate("pilots", title, "no", refusal_codes.NO_PILOT_CAME, sentence, command=pilot_command(most.site))
    sentence = f"pilots ask at {len(alive)} of {plural(len(open_to), 'site')} with jobs"
    latest = min(alive, key=lambda one: (one.silent_s or 0.0, one.site))
    sentence += f": the last call came {hours(latest.silent_s or 0.0)} ago, at {latest.site}"
    silent = [one for one in open_to if not one.is_alive]
    if silent:
        names = ", ".join(sorted(one.site for one in silent)[:NAMED])
        sentence += f"; {no_pilot_came(names if len(silent) <= NAMED else f'{len(silent)} others ({names})', silent)}"
    return Gate("pilots", title, "yes", "", sentence)


def _running(facts: WhyFacts) -> Gate:
    title, jobs = "Its payload runs", facts.jobs
    running, ending = jobs.get("running", 0), sum(jobs.get(s, 0) for s in _ENDED_THERE)
    if running:
        return Gate("running", title, "yes", "", f"{plural(running, 'job')} {'runs' if running == 1 else 'run'}")
    waiting, started = jobs.get("activated", 0), sum(jobs.get(s, 0) for s in _STARTED)
    if ending and not waiting:
        return Gate(
            "running", title, "yes", "", f"the payload of {plural(ending, 'job')} has ended, outputs are kept next"
        )
    sentence = f"{plural(waiting, 'job')} {_is(waiting)} activated, none runs" if waiting else "no job of the task runs"
    if started:
        sentence = (
            f"{plural(started, 'job')} {_is(started)} at a pilot and {'starts' if started == 1 else 'start'}, none runs"
        )
    if waiting and facts.share_zero:
        sentence += f"; the share {facts.share_zero} has a target of 0, so that jobs of all other shares go first"
        return Gate("running", title, "no", refusal_codes.SHARE_IS_ZERO, sentence)
    open_to = [one for one in facts.pilots if not one.closed]
    if waiting and open_to and not any(one.asks_now for one in open_to):
        named = sorted(one.site for one in open_to)
        at = named[0] if len(named) == 1 else f"{len(named)} queues ({', '.join(named[:NAMED])})"
        sentence += f"; {no_pilot_came(at, open_to)}"
        if at_work := sum(one.at_pilots for one in open_to):
            sentence += f", while {'one has' if at_work == 1 else 'they have'} {plural(at_work, 'job')} there"
    return Gate("running", title, "no", refusal_codes.NO_JOB_RUNS, sentence)


def _scouts(facts: WhyFacts) -> Gate:
    """The files that are kept for later, while the first jobs show what they need."""
    title, open_jobs = "Its other files may be used", facts.open_jobs
    if not (facts.waits_for_jobs and facts.held):
        return Gate("scouts", title, "not asked", "", "no file waits for scouts")
    sentence = f"{plural(open_jobs, 'scout')} must end first; {waits(facts.held, 'file')} for {_them(open_jobs)}"
    return Gate("scouts", title, "no", refusal_codes.SCOUTS_GO_FIRST, sentence)


NAMED: Final = 3
_STARTED: Final = ("sent", "starting", "running")
_ENDED_THERE: Final = ("holding", "transferring", "merging")


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _has(number: int) -> str:
    return "has" if number == 1 else "have"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


GATES: Final[tuple[Ask, ...]] = (
    _turns,
    _state,
    _inputs,
    _of_new_jobs(_throttle),
    _of_new_jobs(_agent),
    _of_new_jobs(_nucleus),
    _of_new_jobs(_sites),
    _activated,
    at_queues,
    by_pilots,
    _running,
    _scouts,
)
"""The order in which a task passes them. Running jobs show that all before were passed once; new jobs pass them again."""


def walk(facts: WhyFacts) -> tuple[Gate, ...]:
    """All gates in order. Behind the first "no" the others are marked as not reached, but keep what they say; a task that has
    ended waits at none."""
    found: list[Gate] = []
    stopped = False
    for ask in GATES:
        gate = ask(facts)
        if stopped and facts.status in TASK_FINAL:
            gate = Gate(gate.name, gate.title, "not asked", "", f"nothing is waited for: the task is {facts.status}")
        elif stopped and gate.answer == "no":
            gate = Gate(gate.name, gate.title, "not reached", gate.code, gate.sentence, gate.since)
        stopped = stopped or gate.answer == "no"
        found.append(gate)
    return tuple(found)


def first_no(gates: tuple[Gate, ...]) -> Gate | None:
    return next((gate for gate in gates if gate.answer == "no"), None)
