"""The gates behind the making of jobs: from activated ones, over queues and pilots, to a payload that runs. Pure."""

from __future__ import annotations

from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.findings import hours, waits
from tasks_app.domain import job_refusal_codes, refusal_codes
from tasks_app.domain.states import TASK_GENERATING
from tasks_app.explaining.rules.answers import Gate
from tasks_app.explaining.rules.wait_facts import WhyFacts, no_pilot_came, pilot_command

NAMED: Final = 3
_STARTED: Final = ("sent", "starting", "running")
_ENDED_THERE: Final = ("holding", "transferring", "merging")


def by_activation(facts: WhyFacts) -> Gate:
    title, jobs = "Its jobs are ready to run", facts.jobs
    beyond = sum(jobs.get(s, 0) for s in ("activated", *_STARTED, *_ENDED_THERE))
    if beyond:
        sentence = f"{plural(beyond, 'job')} {_is(beyond)} activated or beyond"
        if lacking := jobs.get("assigned", 0):
            code, coming = facts.incoming.code(""), facts.incoming.sentence()
            sentence = "; ".join(filter(None, (sentence, _lack_input(lacking), coming)))
            return Gate("activated", title, "yes", code, sentence)
        return Gate("activated", title, "yes", "", sentence)
    waiting = sum(jobs.get(s, 0) for s in ("defined", "pending", "waiting", "assigned", "throttled"))
    if waiting:
        sentence = f"{waits(waiting, 'job')}, none is activated"
        if lacking := jobs.get("assigned", 0):
            sentence = f"{_lack_input(lacking)}; none is activated"
            if coming := facts.incoming.sentence():
                sentence += f"; {coming}"
            if lacking == waiting:
                code = facts.incoming.code(job_refusal_codes.JOB_WAITS_FOR_INPUT)
                return Gate("activated", title, "no", code, sentence)
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
    # Where one of several is set offline, that is what people see first.
    code = max((one.closed_code for one in closed), key=lambda code: code == refusal_codes.JOBS_AT_CLOSED_QUEUE)
    return Gate("queues", title, "no", code, sentence)


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
    sentence = f"pilots ask at {len(alive)} of {plural(len(open_to), 'site')} where jobs wait"
    latest = min(alive, key=lambda one: (one.silent_s or 0.0, one.site))
    sentence += f": the last call came {hours(latest.silent_s or 0.0)} ago, at {latest.site}"
    silent = [one for one in open_to if not one.is_alive]
    if silent:
        names = ", ".join(sorted(one.site for one in silent)[:NAMED])
        sentence += f"; {no_pilot_came(names if len(silent) <= NAMED else f'{len(silent)} others ({names})', silent)}"
    return Gate("pilots", title, "yes", "", sentence)


def by_running(facts: WhyFacts) -> Gate:
    title, jobs = "Its payload runs", facts.jobs
    running, ending = jobs.get("running", 0), sum(jobs.get(s, 0) for s in _ENDED_THERE)
    moving, held_up = jobs.get("transferring", 0), facts.gathered.code("")
    if running:
        sentence = f"{plural(running, 'job')} {'runs' if running == 1 else 'run'}"
        if held_up:
            sentence += f"; {facts.outgoing.of_jobs(moving)}; {facts.gathered.sentence()}"
        return Gate("running", title, "yes", held_up, sentence)
    waiting, started = jobs.get("activated", 0), sum(jobs.get(s, 0) for s in _STARTED)
    if moving and not waiting and not started:
        sentence = f"its payloads have ended: {facts.outgoing.of_jobs(moving)}"
        if held_up:
            return Gate("running", title, "no", held_up, f"{sentence}; {facts.gathered.sentence()}")
        return Gate("running", title, "no", job_refusal_codes.JOB_OUTPUT_MOVES, sentence)
    if ending and not waiting:
        return Gate(
            "running", title, "yes", "", f"the payload of {plural(ending, 'job')} has ended, outputs are stored next"
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


def by_scouts(facts: WhyFacts) -> Gate:
    """The files that are kept for later, while the first jobs show what they need."""
    title, open_jobs = "Its other files may be used", facts.open_jobs
    if not (facts.waits_for_jobs and facts.held):
        return Gate("scouts", title, "not asked", "", "no file waits for scouts")
    sentence = f"{plural(open_jobs, 'scout')} must end first; {waits(facts.held, 'file')} for {_them(open_jobs)}"
    return Gate("scouts", title, "no", refusal_codes.SCOUTS_GO_FIRST, sentence)


def _lack_input(jobs: int) -> str:
    return f"{waits(jobs, 'job')} for {'its' if jobs == 1 else 'their'} input to be brought to the site"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _has(number: int) -> str:
    return "has" if number == 1 else "have"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"
