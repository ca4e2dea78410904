"""What a job has to pass from being made to its kept outputs, in order; the first "no" is what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from brokerage_app.vocabulary.verdict import UNTRIED
from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.findings import hours
from tasks_app.domain import job_refusal_codes, refusal_codes
from tasks_app.domain.states import JOB_FINAL, JobStatus
from tasks_app.explaining.rules.answers import Answer, Gate
from tasks_app.explaining.rules.wait_facts import NOTHING_COMES, Incoming, PilotFact, no_pilot_came, pilot_command
from tasks_app.transfers.rules.under_way import NOTHING, UnderWay

J = JobStatus
STAGES: Final[Mapping[str, int]] = {
    **dict.fromkeys((J.PENDING, J.WAITING, J.DEFINED, J.ASSIGNED, J.THROTTLED), 0),
    J.ACTIVATED: 1,
    J.SENT: 2,
    J.STARTING: 2,
    J.RUNNING: 3,
    **dict.fromkeys((J.HOLDING, J.TRANSFERRING, J.MERGING), 4),
    J.FINISHED: 5,
}
"""How far a job is. Jobs that ended without success are not here: how far they came, their history says."""
CAP: Final = 10_000


@dataclass(frozen=True, slots=True)
class ChosenFact:
    """The decision that sent the job to its site: its number and time, the site's place among `of` chosen ones, and weight.

    factors    what the weight is the product of
    again_at   when the same sites were chosen last, after the job was made: place, weight and factors are from then
    """

    verdict: int
    at: datetime
    place: int
    of: int
    weight: float
    factors: tuple[tuple[str, float], ...] = ()
    again_at: datetime | None = None

    @property
    def goes_first(self) -> bool:
        """Whether the site got its first few jobs, whatever the weights."""
        return any(name == UNTRIED for name, _ in self.factors)


@dataclass(frozen=True, slots=True)
class QueueFact:
    """Activated jobs of the site that are sent before this one, each number counted up to CAP.

    shares   of shares that are served before its own, `first` of them the next; own: of its own share
    urgent   those that overtake all others; None when it is one of them
    kind     what has shares: "share" of the tree, or "work queue"; "" where nothing has, and priority alone decides
    """

    shares: int = 0
    first: str = ""
    own: int = 0
    urgent: int | None = 0
    kind: str = "share"

    @property
    def ahead(self) -> int:
        return self.shares + self.own + (self.urgent or 0)


@dataclass(frozen=True, slots=True)
class Lacking:
    """What a queue lacks for a job, "" where it lacks nothing.

    walls     why the site runs jobs of administrators only, of which this is none
    channel   why payloads there do not get the ranges of events that the job takes
    input     why an input of it cannot be read now
    """

    walls: str = ""
    channel: str = ""
    input: str = ""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """All that the gates look at. `reached`: when the job first came into each state; `builder`: (number, state).

    silent_s   seconds since its pilot's last sign of life, None before the first; `counted_s` of `timeout_s` have passed after
               which it counts as lost, None when no such time-out concerns it
    not_begun      why it ended before its payload began, in words; "" when it began or nobody knows
    lacking    what the queue lacks for this job
    """

    status: str
    site: str = ""
    reached: Mapping[str, datetime] = field(default_factory=dict)
    made_at: datetime | None = None
    since: datetime | None = None
    error: str = ""
    builder: tuple[int, str] | None = None
    chosen: ChosenFact | None = None
    pilot: PilotFact | None = None
    queue: QueueFact = QueueFact()
    silent_s: float | None = None
    timeout_s: float | None = None
    counted_s: float = 0.0
    merging: str = ""
    outgoing: UnderWay = NOTHING
    incoming: Incoming = NOTHING_COMES
    gathered: Incoming = NOTHING_COMES
    lacking: Lacking = field(default_factory=Lacking)
    not_begun: str = ""

    @property
    def stage(self) -> int:
        if self.status in STAGES:
            return STAGES[self.status]
        return max((STAGES.get(status, 0) for status in self.reached), default=0)

    @property
    def site_status(self) -> str:
        """The status of the queue at which it waits."""
        return self.pilot.status if self.waits_for_pilot and self.pilot is not None else ""

    @property
    def waits_for_pilot(self) -> bool:
        return self.status == J.ACTIVATED


Ask = Callable[[JobFacts], Gate]


def _gate(
    name: str, title: str, facts: JobFacts, *, reached: tuple[str, ...], stage: int, says: str = ""
) -> Gate | None:
    """The answer for a stage that the job has behind it; None when it has not."""
    if facts.stage < stage:
        return None
    since = min((facts.reached[one] for one in reached if one in facts.reached), default=None)
    return Gate(name, title, "yes", "", says, since)


def _alive(facts: JobFacts) -> Gate:
    title = "It has not failed"
    if facts.status in JOB_FINAL and facts.status != J.FINISHED:
        said = facts.error or f"the job is {facts.status}"
        return Gate("alive", title, "no", job_refusal_codes.JOB_ENDED_BADLY, said, facts.since)
    return Gate("alive", title, "yes", "", f"the job is {facts.status}", facts.since)


def _brokered(facts: JobFacts) -> Gate:
    title = "A site was chosen for the job"
    if not facts.site:
        return Gate("brokered", title, "no", job_refusal_codes.NO_SITE_CHOSEN, "the job has no site", facts.made_at)
    chosen = facts.chosen
    if chosen is None:
        return Gate("brokered", title, "yes", "", f"{facts.site}; the decision is not kept", facts.made_at)
    place = "the only site chosen" if chosen.of == 1 else f"number {chosen.place} of {chosen.of} chosen sites"
    said = f"{facts.site} was {place}, with weight {chosen.weight:.4g} (decision {chosen.verdict})"
    return Gate("brokered", title, "yes", "", said, chosen.at)


def _activated(facts: JobFacts) -> Gate:
    name, title = "activated", "Its library and input are ready"
    found = _gate(name, title, facts, reached=(J.ACTIVATED,), stage=1, says="it was activated")
    if found is not None:
        return found
    if facts.builder is not None:
        number, status = facts.builder
        said = f"job {number}, which builds its library, is {status}"
        return Gate(name, title, "no", job_refusal_codes.JOB_WAITS_FOR_LIBRARY, said, facts.since)
    if facts.status == J.ASSIGNED:
        said = facts.incoming.sentence("of its input") or f"its input is brought to {facts.site}"
        code = facts.incoming.code(job_refusal_codes.JOB_WAITS_FOR_INPUT)
        return Gate(name, title, "no", code, said, facts.since)
    return Gate(name, title, "no", refusal_codes.JOBS_NOT_ACTIVATED, f"the job is {facts.status}", facts.since)


def _open(facts: JobFacts) -> Gate:
    name, title = "queue", "Its queue runs jobs"
    found = _gate(name, title, facts, reached=(J.SENT, J.STARTING), stage=2)
    if found is not None:
        return found
    if not facts.waits_for_pilot or facts.pilot is None:
        return Gate(name, title, "not asked", "", "the job is not queued yet")
    if facts.pilot.closed:
        said = f"the job waits at {facts.site}: {facts.pilot.closed}"
        return Gate(name, title, "no", facts.pilot.closed_code, said, facts.reached.get(J.ACTIVATED, facts.since))
    return Gate(name, title, "yes", "", f"the status of {facts.site} is {facts.site_status}")


def _pilots(facts: JobFacts) -> Gate:
    name, title = "pilots", "Pilots ask for jobs at its site"
    found = _gate(name, title, facts, reached=(J.SENT, J.STARTING), stage=2, says="one came for it")
    if found is not None:
        return found
    if not facts.waits_for_pilot:
        return Gate(name, title, "not asked", "", "the job is not queued at its site yet")
    pilot = facts.pilot
    if pilot is None or not pilot.is_alive:
        said = f"{no_pilot_came(facts.site, [pilot] if pilot else [])}; {_workers(pilot)}"
        since = facts.reached.get(J.ACTIVATED, facts.since)
        return Gate(name, title, "no", refusal_codes.NO_PILOT_CAME, said, since, command=pilot_command(facts.site))
    said = f"the last call came {hours(pilot.silent_s or 0.0)} ago; {_workers(pilot)} in the batch system"
    return Gate(name, title, "yes", "", said)


def _workers(pilot: PilotFact | None) -> str:
    number = pilot.workers if pilot is not None else 0
    return f"{plural(number, 'worker')} {'runs or waits' if number == 1 else 'run or wait'}"


def _turn(facts: JobFacts) -> Gate:
    name, title = "turn", "It is its turn"
    if facts.stage >= 2:
        return Gate(name, title, "yes")
    if not facts.waits_for_pilot:
        return Gate(name, title, "not asked", "", "the job is not queued at its site yet")
    since = facts.reached.get(J.ACTIVATED, facts.since)
    if walls := facts.lacking.walls:
        said = f"{facts.site} runs only jobs of administrators, because payloads are not isolated there: {walls}"
        return Gate(name, title, "no", job_refusal_codes.JOB_UNWALLED, said, since)
    if channel := facts.lacking.channel:
        said = f"pilots of {facts.site} get no job that takes ranges of events: {channel}"
        return Gate(name, title, "no", job_refusal_codes.JOB_WITHOUT_CHANNEL, said, since)
    if away := facts.lacking.input:
        return Gate(name, title, "no", job_refusal_codes.JOB_INPUT_AWAY, f"its {away}", since)
    queue = facts.queue
    if not queue.ahead:
        return Gate(name, title, "yes", "", "the next pilot that asks for such jobs gets this one")
    said = "; ".join(_ahead(queue))
    if facts.pilot is not None and not facts.pilot.asks_now:
        said += f"; {no_pilot_came(facts.site, [facts.pilot])}"
    return Gate(name, title, "no", job_refusal_codes.JOBS_GO_FIRST, said, since)


def _ahead(queue: QueueFact) -> Iterator[str]:
    """What goes first."""
    if queue.own:
        whose = " of urgent tasks" if queue.urgent is None else f" of its {queue.kind}" if queue.kind else ""
        why = "it has a higher priority, or the same and is older"
        why = why if queue.own == 1 else "they have a higher priority, or the same and are older"
        yield f"{_jobs(queue.own, whose)}: {why}"
    if queue.urgent:
        yield f"{_jobs(queue.urgent, ' of urgent tasks')}, before all {queue.kind or 'other'}s"
    if queue.shares:
        yield f"{_jobs(queue.shares, f' of {queue.kind}s that are served before')}, of {queue.first} the next"


def _jobs(number: int, whose: str) -> str:
    if number == 1:
        return f"1 job{whose} goes first"
    return f"{CAP}+ jobs{whose} go first" if number > CAP else f"{number} jobs{whose} go first"


def _sent(facts: JobFacts) -> Gate:
    name, title = "sent", "A pilot has it"
    found = _gate(name, title, facts, reached=(J.SENT, J.STARTING), stage=2, says="the job was handed to a pilot")
    return found or Gate(name, title, "no", refusal_codes.NO_JOB_RUNS, "no pilot has taken the job yet", facts.since)


def _running(facts: JobFacts) -> Gate:
    name, title = "running", "Its payload runs"
    silent = facts.silent_s
    heard = "no sign of life yet" if silent is None else f"the last heartbeat came {silent:.0f} s ago"
    if facts.timeout_s is not None and facts.counted_s > facts.timeout_s:
        said = f"{heard}; after {facts.timeout_s:.0f} s the job counts as lost"
        return Gate(name, title, "no", job_refusal_codes.JOB_LOST_HEARTBEAT, said, facts.since)
    if facts.not_begun:
        return Gate(name, title, "not asked", "", f"it did not run: {facts.not_begun}")
    says = heard if facts.status == J.RUNNING else "it ran"
    found = _gate(name, title, facts, reached=(J.RUNNING,), stage=3, says=says)
    return found or Gate(
        name, title, "no", job_refusal_codes.JOB_STARTS, f"the job is {facts.status}, {heard}", facts.since
    )


_ENDING: Final = {
    J.HOLDING: (job_refusal_codes.JOB_IS_BOOKED, "its report has arrived and is not recorded yet"),
    J.TRANSFERRING: (job_refusal_codes.JOB_OUTPUT_MOVES, "its outputs are being brought to {}"),
    J.MERGING: (job_refusal_codes.JOB_OUTPUT_MERGES, "its outputs wait to be merged"),
}


def _outputs(facts: JobFacts) -> Gate:
    name, title = "outputs", "Its outputs are kept"
    if facts.status == J.FINISHED:
        return Gate(name, title, "yes", "", "the job has finished", facts.since)
    if facts.status in _ENDING:
        code, said = _ENDING[J(facts.status)]
        if held_up := facts.gathered.code(""):
            return Gate(name, title, "no", held_up, facts.gathered.sentence("of its outputs"), facts.since)
        return Gate(name, title, "no", code, facts.merging or said.format(facts.outgoing.where), facts.since)
    said = f"the job is {facts.status}" if facts.status in JOB_FINAL else "the payload has not ended"
    return Gate(name, title, "not asked", "", said)


GATES: Final[tuple[Ask, ...]] = (_alive, _brokered, _activated, _open, _pilots, _turn, _sent, _running, _outputs)


def walk(facts: JobFacts) -> tuple[Gate, ...]:
    """All gates in order; behind the first "no" the others are marked as not reached."""
    found: list[Gate] = []
    stopped = False
    for ask in GATES:
        gate = ask(facts)
        answer: Answer = "not reached" if stopped and gate.answer == "no" else gate.answer
        found.append(replace(gate, answer=answer))
        stopped = stopped or gate.answer == "no"
    return tuple(found)
