"""What a task has to pass from its submission to running jobs, in order; the first "no" is why it waits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from jedisite.vocabulary.words import plural
from tasks_app.attention.rules.findings import in_a_row, waits
from tasks_app.domain import refusal_codes
from tasks_app.domain.final import UNMADE
from tasks_app.domain.states import TASK_FINAL, TASK_GENERATING, TASK_SEEKS_INPUT, TaskStatus
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.domain.turns import AGENT_OF
from tasks_app.explaining.rules.answers import Gate
from tasks_app.explaining.rules.run_gates import NAMED, at_queues, by_activation, by_pilots, by_running, by_scouts
from tasks_app.explaining.rules.wait_facts import WhyFacts

T = TaskStatus

DESTINED: Final = (
    "they go to the destination that the task names, else to the storage to which the queue writes that makes them"
)
NOT_GATHERED: Final = f"no nucleus gathers its outputs: {DESTINED}"
AT_WORK: Final = frozenset({*AGENT_OF.values(), "merger", "adder", "libraries", "periodic"})
"""Agents without which a task does not get on; watchdogs are none."""
STAGING: Final = frozenset({T.STAGING, T.STAGED})
UNREFINED: Final = frozenset({T.REGISTERED, T.REREFINE, T.TOINCEXEC, T.TOPREPROCESS, T.PREPROCESSING})
NOT_PLACED: Final = UNREFINED | STAGING | {T.DEFINED, T.ASSIGNING}
"""In which outputs of a task have no place at its nucleus yet."""
ENDING: Final = frozenset({T.PREPARED, T.FINISHING, T.PASSED, T.TOABORT, T.ABORTING, T.TOBROKEN})
UNREAD: Final = frozenset({"registered", "defined", "toupdate", "pending"})
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


Ask = Callable[[WhyFacts], Gate]


def _turns(facts: WhyFacts) -> Gate:
    title, trouble = "Agents work on the task", facts.trouble
    if facts.status in TASK_FINAL:
        return Gate("turns", title, "yes", "", "no agent has put it aside")
    agent = facts.agent if not facts.waits_for_jobs else None
    late = agent.overdue if agent is not None else ""
    if trouble is None and agent is not None and late:
        # Said first: what is known of the other gates is from before.
        return Gate(
            "turns", title, "no", refusal_codes.AGENT_PAUSED if agent.paused else refusal_codes.AGENT_LATE, late
        )
    if trouble is None:
        return Gate("turns", title, "yes", "", "no agent has put it aside")
    times = in_a_row(trouble.failures)
    sentence = f"the agent {trouble.agent} has failed {times} at this task and will retry later: {trouble.error}"
    return Gate("turns", title, "no", refusal_codes.AGENT_FAILS, sentence, trouble.since)


def _state(facts: WhyFacts) -> Gate:
    def no(code: str, sentence: str) -> Gate:
        return Gate("state", "The state of the task allows jobs", "no", code, sentence, facts.state_since)

    status = facts.status
    if status in RUNS_AGAIN and facts.sites_gone:
        gone = f"{', '.join(facts.sites_gone[:NAMED])} no longer exist{'s' if len(facts.sites_gone) == 1 else ''}"
        return no(refusal_codes.TASK_SITES_GONE, f"{facts.error_dialog or f'the task is {status}'}; {gone}")
    if facts.lost_to_it:
        return no(refusal_codes.TASK_READS_LOST, facts.lost_to_it)
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
            f"{said.rstrip('.')}. The site warned: {facts.warned}",
        )
    if status in ENDED:
        return no(ENDED[status], facts.error_dialog or f"the task is {status}")
    if status in TASK_FINAL:
        return no(refusal_codes.TASK_ENDED, facts.error_dialog or f"the task is {status}")
    if status == T.PAUSED:
        return no(refusal_codes.TASK_PAUSED, facts.error_dialog or "the task was paused")
    if status == T.EXHAUSTED:
        return no(
            refusal_codes.TASK_STOPPED_BY_ITSELF, facts.error_dialog or "the task has stopped and waits for a decision"
        )
    if status in ENDING:
        return no(refusal_codes.TASK_ENDING, facts.error_dialog or f"the task is {status}")
    return Gate("state", "The state of the task allows jobs", "yes", "", f"the task is {status}", facts.state_since)


def _inputs(facts: WhyFacts) -> Gate:
    title = "The inputs are known"
    if facts.status in UNREFINED:
        return Gate(
            "inputs", title, "no", refusal_codes.TASK_NOT_REFINED, f"the task is {facts.status}", facts.state_since
        )
    if facts.status in STAGING:
        sentence = _staged(facts) or facts.error_dialog or f"the task is {facts.status}"
        code = facts.from_tape.code(refusal_codes.INPUT_NOT_STAGED)
        return Gate("inputs", title, "no", code, sentence, facts.state_since)
    unread = [one for one in facts.inputs if one.status in UNREAD]
    parent = facts.parent
    if unread and parent is not None and not parent.has_ended:
        sentence = f"the parent task {parent.id}, which makes {unread[0].name}, is {parent.status}"
        return Gate("inputs", title, "no", refusal_codes.PARENT_NOT_FINISHED, sentence, facts.state_since)
    if unread:
        sentence = f"the input {unread[0].name} has not been read yet"
        if len(unread) > 1:
            sentence += f", and {plural(len(unread) - 1, 'more has', 'more have')} not been read"
        if facts.error_dialog:
            sentence += f": {facts.error_dialog}"
        return Gate("inputs", title, "no", refusal_codes.INPUT_NOT_READ, sentence, facts.state_since)
    if facts.returns_to in TASK_SEEKS_INPUT:
        waits_for_parent = parent is not None and not parent.has_ended
        code = refusal_codes.PARENT_NOT_FINISHED if waits_for_parent else refusal_codes.INPUT_NOT_READ
        return Gate(
            "inputs", title, "no", code, facts.error_dialog or "its input is looked up again", facts.state_since
        )
    left, files = sum(one.files_left for one in facts.inputs), sum(one.files for one in facts.inputs)
    if facts.inputs and not left:
        return _none_left(facts, title, files)
    missing = sum(one.missing for one in facts.inputs)
    units = ("part of the work is", "parts of the work are") if facts.reads_nothing else ("file is", "files are")
    says = f"{left} of {plural(files, *units)} left for jobs" if files else "the task needs no input"
    if facts.staging:
        says += f"; it {_staged(facts)}"
    return Gate("inputs", title, "yes", "", f"{says}, {plural(missing, 'is', 'are')} missing" if missing else says)


def _staged(facts: WhyFacts) -> str:
    """How far staging is, and what holds it up; "" where nothing is staged."""
    return "; ".join(filter(None, (facts.staging, facts.from_tape.why))) if facts.staging else ""


def _none_left(facts: WhyFacts, title: str, files: int) -> Gate:
    """No file is left for another job: what the task waits for is said of its jobs, when it has any."""
    if facts.waits_for_jobs:
        return Gate("inputs", title, "yes", "", f"{_all_in_jobs(files - facts.held)} in jobs or done")
    if facts.staging:
        code = facts.from_tape.code(refusal_codes.INPUT_NOT_STAGED)
        return Gate("inputs", title, "no", code, _staged(facts), facts.state_since)
    if facts.held:
        sentence = f"the scouts have ended and are judged next; {waits(facts.held, 'file')} for that"
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
    said = f"{waits(held, 'file')} for more files, or until the dataset is closed"
    if not held:
        said = (
            f"none of {plural(files, 'file')} is left; more may come"
            if files
            else "the input has no files yet; some may come"
        )
    if facts.status == T.DEFINED and facts.error_dialog:
        said = facts.error_dialog
    is_due = facts.now is not None and next_look <= facts.now
    when = "due now" if is_due else f"at {next_look:%H:%M:%S} UTC, or once the dataset changes here"
    return f"{said}; the next check is {when}"


def _all_in_jobs(files: int) -> str:
    return "the only file that may be used is" if files == 1 else f"all {files} files that may be used are"


def _throttle(facts: WhyFacts) -> Gate:
    title = "The task is not throttled"
    if facts.status == T.THROTTLED:
        return Gate("throttle", title, "no", refusal_codes.TASK_THROTTLED, facts.error_dialog, facts.state_since)
    for verdict in (facts.throttle, facts.verdict):
        if verdict is None or not verdict.is_throttle:
            continue
        return Gate(
            "throttle", title, "no", verdict.code, verdict.sentence, verdict.since or verdict.at, helps=verdict.advice
        )
    return Gate("throttle", title, "yes", "", facts.allowed or "no limit of its work queue or share applies")


def _agent(facts: WhyFacts) -> Gate:
    title, agent = "An agent handles the task", facts.agent
    if agent is None:
        return Gate("agent", title, "not asked", "", f"no agent handles tasks in the state {facts.status}")
    if agent.paused:
        return Gate("agent", title, "no", refusal_codes.AGENT_PAUSED, agent.overdue)
    if agent.errors_in_a_row:
        failed = f"the agent {agent.name} has failed {in_a_row(agent.errors_in_a_row)}"
        sentence = f"{', '.join(filter(None, (failed, agent.next_pass)))}: {agent.last_error}"
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, sentence)
    if agent.silent_s is None:
        sentence = f"the agent {agent.name} has never run, but should run every {agent.period_s:g} s"
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, sentence)
    if agent.overdue:
        return Gate("agent", title, "no", refusal_codes.AGENT_LATE, agent.overdue)
    claimed = f"{facts.claimed_by} works on it" if facts.claimed_by else ""
    says = (agent.last_pass, agent.next_pass, claimed)
    return Gate("agent", title, "yes", "", "; ".join(filter(None, says)))


def _nucleus(facts: WhyFacts) -> Gate:
    title = "The task has a nucleus"
    if facts.status != T.ASSIGNING:
        says = f"its outputs are gathered at {facts.nucleus}" if facts.nucleus else NOT_GATHERED
        if facts.nucleus and facts.not_gathered:
            says = f"{facts.nucleus} gathers none of its outputs: {facts.not_gathered}"
        return Gate("nucleus", title, "yes" if facts.nucleus else "not asked", "", says)
    verdict = facts.task_verdict
    if verdict is None or not verdict.code:
        return Gate("nucleus", title, "no", refusal_codes.NO_NUCLEUS_YET, facts.error_dialog, facts.state_since)
    return Gate("nucleus", title, "no", verdict.code, verdict.sentence, facts.since(verdict))


def _sites(facts: WhyFacts) -> Gate:
    title, verdict = "A site accepts its jobs", facts.verdict
    if verdict is None:
        if facts.status == T.PENDING:
            return Gate("sites", title, "no", refusal_codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
        if not facts.jobs and facts.status in TASK_GENERATING:
            if facts.passed_over:
                sentence = f"{facts.allowed.rstrip('.')}; tasks ahead of it have used them up so far"
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
            sentence = f"no broker has decided on it yet{due.rstrip('; ')}"
            return Gate("sites", title, "no", refusal_codes.NOT_LOOKED_AT, sentence, facts.state_since)
        return Gate("sites", title, "not asked", "", "no broker has decided on it yet")
    if not verdict.chosen and not verdict.is_throttle:
        return Gate("sites", title, "no", verdict.code, verdict.sentence, facts.since(verdict))
    if facts.status == T.PENDING:
        return Gate("sites", title, "no", refusal_codes.TASK_WAITS_TO_RETRY, facts.error_dialog, facts.state_since)
    return Gate("sites", title, "yes", "", verdict.sentence, verdict.since or verdict.at)


def _goal(facts: WhyFacts) -> Gate:
    """Never in the way: a task at its goal is finished when every file was tried."""
    title = "Its goal lets it continue"
    if not facts.goal:
        return Gate("goal", title, "not asked", "", "it has no goal: it processes all of its input")
    return Gate("goal", title, "yes", "", f"its goal is {facts.goal}")


def _of_new_jobs(ask: Ask) -> Ask:
    """A gate that only new jobs have to pass: not asked when all that may be used is in jobs."""

    def asked(facts: WhyFacts) -> Gate:
        gate = ask(facts)
        if not facts.waits_for_jobs or gate.answer == "yes":
            return gate
        return Gate(gate.name, gate.title, "not asked", "", "no new job is needed now")

    return asked


GATES: Final[tuple[Ask, ...]] = (
    _turns,
    _state,
    _inputs,
    _of_new_jobs(_throttle),
    _of_new_jobs(_agent),
    _of_new_jobs(_nucleus),
    _of_new_jobs(_sites),
    by_activation,
    at_queues,
    by_pilots,
    by_running,
    by_scouts,
    _goal,
)
"""The order in which a task passes them. Running jobs show that all before were passed once; new jobs pass them again."""


def walk(facts: WhyFacts, added: Iterable[Gate] = ()) -> tuple[Gate, ...]:
    """All gates in order, those that other apps have added last. Behind the first "no" the others are marked as not reached,
    but keep what they say; a task that has ended waits at none."""
    found: list[Gate] = []
    stopped = False
    for gate in (*(ask(facts) for ask in GATES), *added):
        if stopped and facts.status in TASK_FINAL:
            gate = Gate(gate.name, gate.title, "not asked", "", f"not asked, since the task is {facts.status}")
        elif stopped and gate.answer == "no":
            gate = Gate(gate.name, gate.title, "not reached", gate.code, gate.sentence, gate.since)
        stopped = stopped or gate.answer == "no"
        found.append(gate)
    return tuple(found)
