from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jedisite import refusals
from tasks_app.domain.final import UNMADE
from tasks_app.domain.states import TASK_FINAL, TaskStatus
from tasks_app.domain.task_commands import COMMANDS, TaskCommand
from tasks_app.explaining.rules.answers import Gate, first_no
from tasks_app.explaining.rules.gates import GATES, walk
from tasks_app.explaining.rules.wait_facts import (
    AgentFact,
    InputFact,
    ParentFact,
    PilotFact,
    Trouble,
    VerdictFact,
    WhyFacts,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
INPUT = InputFact("data", "ready", files=10, files_left=4)
AGENT = AgentFact("job_generator", period_s=2, silent_s=1.0)
CHOSEN = VerdictFact("", "2 of 3 sites were chosen.", 2, AT)
REFUSED = VerdictFact("low_memory", "All 3 sites were skipped: 3 low memory.", 0, AT)
HELD = VerdictFact("throttled_queued", "Throttled: 90 jobs are queued, 80 are wanted.", 0, AT, stopped=True)
GOOD = WhyFacts(
    "running",
    inputs=(INPUT,),
    agent=AGENT,
    verdict=CHOSEN,
    jobs={"running": 3, "activated": 1},
    pilots=(PilotFact("A", 1, 5.0),),
)

NONE_LEFT = replace(INPUT, files_left=0)
HELD_BACK = InputFact("data", "ready", files=300, files_left=0, held=290)
CLOSED = PilotFact("OFFQ", 2, 60.0, status="offline", reason="new switches until noon.")


def test_where_outputs_go_is_said_also_without_a_nucleus() -> None:
    said = {gate.name: gate.sentence for gate in walk(replace(GOOD, nucleus=""))}["nucleus"]
    assert said.startswith("no nucleus gathers its outputs: they go to the destination that the task names")
    assert said.endswith("else to the storage to which the queue writes that makes them")


def test_the_goal_of_a_task_is_the_last_of_its_gates_and_never_in_the_way() -> None:
    said = "60 % of the input; 20 % is processed, so that it is not reached yet"
    *_, with_goal = walk(replace(GOOD, goal=said))
    *_, without = walk(GOOD)
    assert (with_goal.name, with_goal.answer, with_goal.sentence) == ("goal", "yes", f"its goal is {said}")
    assert (without.name, without.answer) == ("goal", "not asked")


CASES = [
    ("all is well", GOOD, "", ""),
    (
        "an agent fails at it",
        replace(GOOD, status="registered", trouble=Trouble("refiner", 2, "KeyError: 'x'", AT)),
        "turns",
        "agent_fails",
    ),
    (
        "an agent failed before it ended",
        replace(GOOD, status="done", trouble=Trouble("boost", 2, "KeyError: 'x'", AT)),
        "state",
        "task_all_done",
    ),
    ("done", replace(GOOD, status="done"), "state", "task_all_done"),
    ("done, warned", replace(GOOD, status="done", warned="Nothing replaces %IN."), "state", "task_done_and_warned"),
    (
        "done, its input is not",
        replace(GOOD, status="done", error_dialog=f"x{UNMADE}, run"),
        "state",
        "task_parent_incomplete",
    ),
    ("finished", replace(GOOD, status="finished"), "state", "task_ended"),
    ("failed", replace(GOOD, status="failed"), "state", "task_failed"),
    ("failed, jobs too", replace(GOOD, status="failed", had_errors=True), "state", "task_failed_with_errors"),
    ("finished, jobs failed", replace(GOOD, status="finished", had_errors=True), "state", "task_some_done"),
    ("aborted", replace(GOOD, status="aborted", had_errors=True), "state", "task_ended"),
    ("aborted, all processed", replace(GOOD, status="aborted", nothing_left=True), "state", "task_nothing_left"),
    (
        "finished, some of its files lost",
        replace(
            GOOD, status="finished", had_errors=True, lost_to_it="task 7 is finished, and 1 of its files is lost: a"
        ),
        "state",
        "task_reads_lost",
    ),
    ("aborted, sites gone", replace(GOOD, status="aborted", sites_gone=("A", "B")), "state", "task_sites_gone"),
    ("exhausted, site gone", replace(GOOD, status="exhausted", sites_gone=("A",)), "state", "task_sites_gone"),
    ("done, site gone", replace(GOOD, status="done", sites_gone=("A",)), "state", "task_all_done"),
    ("broken", replace(GOOD, status="broken"), "state", "task_broken"),
    ("to be broken", replace(GOOD, status="tobroken"), "state", "task_broken"),
    ("no pass yet", replace(GOOD, status="ready", verdict=None, jobs={}, pilots=()), "sites", "not_looked_at"),
    (
        "others use up what may be made",
        replace(
            GOOD,
            status="ready",
            verdict=None,
            jobs={},
            pilots=(),
            rationed=True,
            state_since=AT,
            now=AT + timedelta(seconds=9),
        ),
        "sites",
        "jobs_rationed",
    ),
    (
        "not refined, and the refiner is late",
        replace(GOOD, status="registered", agent=AgentFact("refiner", False, 5.0, 155.0)),
        "turns",
        "agent_late",
    ),
    ("paused", replace(GOOD, status="paused"), "state", "task_paused"),
    ("exhausted", replace(GOOD, status="exhausted"), "state", "task_stopped_by_itself"),
    ("finishing", replace(GOOD, status="finishing"), "state", "task_ending"),
    ("not refined", replace(GOOD, status="registered"), "inputs", "task_not_refined"),
    ("not read", replace(GOOD, inputs=(INPUT, replace(INPUT, status="defined"))), "inputs", "input_not_read"),
    (
        "waits for its parent",
        replace(GOOD, inputs=(replace(INPUT, status="defined"),), parent=ParentFact(7, "running")),
        "inputs",
        "parent_not_finished",
    ),
    (
        "waits for its parent before it is refined",
        replace(GOOD, status="pending", inputs=(), parent=ParentFact(7, "running"), returns_to="registered"),
        "inputs",
        "parent_not_finished",
    ),
    (
        "waits for input before it is refined",
        replace(GOOD, status="pending", inputs=(), returns_to="registered"),
        "inputs",
        "input_not_read",
    ),
    (
        "has read no files yet",
        replace(GOOD, status="pending", inputs=(NONE_LEFT,), jobs={}, returns_to="defined"),
        "inputs",
        "input_not_read",
    ),
    (
        "parent has ended",
        replace(GOOD, inputs=(replace(INPUT, status="defined"),), parent=ParentFact(7, "done")),
        "inputs",
        "input_not_read",
    ),
    ("input is staged", replace(GOOD, status="staging"), "inputs", "input_not_staged"),
    (
        "all that has come from tape is in jobs or done",
        replace(
            GOOD, inputs=(NONE_LEFT,), jobs={"finished": 9}, pilots=(), staging="waits for 2 of 40 files from tape"
        ),
        "inputs",
        "input_not_staged",
    ),
    ("used up", replace(GOOD, inputs=(NONE_LEFT,), jobs={"finished": 9}, pilots=()), "inputs", "input_used_up"),
    ("all in jobs, and they run", replace(GOOD, inputs=(NONE_LEFT,), verdict=REFUSED), "", ""),
    ("all in jobs, they are recorded", replace(GOOD, inputs=(NONE_LEFT,), jobs={"holding": 2}, pilots=()), "", ""),
    (
        "all in jobs, queue offline",
        replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 2}, pilots=(CLOSED,)),
        "queues",
        "jobs_at_closed_queue",
    ),
    (
        "all in jobs, storage full",
        replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 2}, pilots=(PilotFact("A", 2, 5, shut="DISK is full"),)),
        "queues",
        "jobs_at_shut_storage",
    ),
    (
        "all in jobs, one queue offline, a storage full",
        replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 2}, pilots=(PilotFact("A", 2, 5, shut="x"), CLOSED)),
        "queues",
        "jobs_at_closed_queue",
    ),
    (
        "all in jobs, no pilot",
        replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 2}, pilots=(PilotFact("A", 2),)),
        "pilots",
        "no_pilot_came",
    ),
    ("scouts run", replace(GOOD, status="scouting", inputs=(HELD_BACK,)), "scouts", "scouts_go_first"),
    (
        "scouts cannot run",
        replace(GOOD, status="scouting", inputs=(HELD_BACK,), jobs={"activated": 2}, pilots=(CLOSED,)),
        "queues",
        "jobs_at_closed_queue",
    ),
    (
        "scouts have ended",
        replace(GOOD, status="scouting", inputs=(HELD_BACK,), jobs={"finished": 2}, pilots=()),
        "inputs",
        "scouts_go_first",
    ),
    ("no inputs at all", replace(GOOD, inputs=()), "", ""),
    ("throttled state", replace(GOOD, status="throttled"), "throttle", "task_throttled"),
    ("throttled by the throttler", replace(GOOD, verdict=HELD), "throttle", "throttled_queued"),
    ("agent paused", replace(GOOD, agent=replace(AGENT, paused=True)), "turns", "agent_paused"),
    ("agent fails", replace(GOOD, agent=replace(AGENT, errors_in_a_row=2, last_error="boom")), "agent", "agent_late"),
    ("agent never ran", replace(GOOD, agent=replace(AGENT, silent_s=None)), "agent", "agent_late"),
    ("agent silent for a minute", replace(GOOD, agent=replace(AGENT, silent_s=60)), "", ""),
    ("agent silent for longer", replace(GOOD, agent=replace(AGENT, silent_s=60.1)), "turns", "agent_late"),
    ("slow agent", replace(GOOD, agent=replace(AGENT, period_s=30, silent_s=300)), "", ""),
    ("no agent for the state", replace(GOOD, agent=None), "", ""),
    ("assigning, not decided", replace(GOOD, status="assigning"), "nucleus", "no_nucleus_yet"),
    ("assigning, refused", replace(GOOD, status="assigning", task_verdict=REFUSED), "nucleus", "low_memory"),
    ("no site", replace(GOOD, verdict=REFUSED), "sites", "low_memory"),
    ("pending without verdict", replace(GOOD, status="pending", verdict=None), "sites", "task_waits_to_retry"),
    ("pending although chosen", replace(GOOD, status="pending"), "sites", "task_waits_to_retry"),
    ("no job yet", replace(GOOD, jobs={}, pilots=()), "activated", "no_job_made"),
    ("jobs wait for input", replace(GOOD, jobs={"assigned": 2}, pilots=()), "activated", "job_waits_for_input"),
    ("jobs wait for a library", replace(GOOD, jobs={"defined": 2}, pilots=()), "activated", "jobs_not_activated"),
    ("no pilot ever", replace(GOOD, jobs={"activated": 1}, pilots=(PilotFact("A", 1),)), "pilots", "no_pilot_came"),
    (
        "pilots silent",
        replace(GOOD, jobs={"activated": 1}, pilots=(PilotFact("A", 1, 3 * 3600.1),)),
        "pilots",
        "no_pilot_came",
    ),
    (
        "none runs, its share is for nobody",
        replace(GOOD, jobs={"activated": 3}, share_zero="ZERO"),
        "running",
        "share_is_zero",
    ),
    (
        "outputs wait to be gathered",
        replace(GOOD, inputs=(NONE_LEFT,), jobs={"transferring": 4, "holding": 1}, pilots=()),
        "running",
        "job_output_moves",
    ),
    ("some run while outputs are gathered", replace(GOOD, jobs={"transferring": 4, "running": 1}, pilots=()), "", ""),
    ("none runs yet", replace(GOOD, jobs={"activated": 1}), "running", "no_job_runs"),
]


@pytest.mark.parametrize(("facts", "name", "code"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_the_first_no_is_what_the_task_waits_for(facts: WhyFacts, name: str, code: str) -> None:
    blocked = first_no(walk(facts))
    assert (blocked.name if blocked else "", blocked.code if blocked else "") == (name, code)
    if blocked:
        assert blocked.sentence or facts.status in ("throttled", "pending", "assigning")
        assert blocked.advice


RETRY = COMMANDS[TaskCommand.RETRY].accepted


@pytest.mark.parametrize("status", sorted(TASK_FINAL))
def test_advice_for_a_task_at_its_end_is_a_command_that_its_state_takes(status: str) -> None:
    blocked = first_no(walk(replace(GOOD, status=status)))
    assert blocked
    advises_retry = "retry the task" in blocked.advice.lower()
    assert advises_retry is (status in RETRY), blocked.advice
    assert ("incexec" in blocked.advice) is (status == "failed")


def test_a_task_that_no_pass_has_looked_at_says_so_and_when_the_next_is() -> None:
    agent = replace(AGENT, due_s=1.5)
    blocked = first_no(walk(replace(GOOD, status="ready", verdict=None, jobs={}, pilots=(), agent=agent)))
    assert blocked
    assert blocked.sentence == (
        "no broker has decided on it yet: the last pass of the agent job_generator ended 1 s ago; the next is due in 2 s"
    )


def test_behind_the_first_no_nothing_is_reached() -> None:
    gates = walk(replace(GOOD, status="paused", verdict=REFUSED))
    assert [gate.answer for gate in gates if gate.name in ("state", "sites")] == ["no", "not reached"]
    assert len(gates) == len(GATES)


@pytest.mark.parametrize("status", sorted(TASK_FINAL))
def test_a_task_that_has_ended_waits_at_no_gate(status: str) -> None:
    used_up = replace(GOOD, status=status, inputs=(NONE_LEFT,), jobs={"finished": 9}, pilots=(), verdict=REFUSED)
    turns, state, *others = walk(used_up)
    assert (turns.answer, state.answer, len(others)) == ("yes", "no", len(GATES) - 2)
    assert {(gate.answer, gate.code, gate.sentence) for gate in others} == {
        ("not asked", "", f"not asked, since the task is {status}")
    }


def test_an_input_that_is_not_read_is_not_called_by_the_name_of_its_state() -> None:
    waits = replace(GOOD, inputs=(replace(INPUT, status="defined"),), error_dialog="the dataset data does not exist")
    assert first_no(walk(waits)).sentence == "the input data has not been read yet: the dataset data does not exist"


def test_gates_that_are_passed_say_by_how_much() -> None:
    agent = replace(AGENT, took_s=0.25, items=12, due_s=1.5)
    facts = replace(GOOD, agent=agent, allowed="MC: 80 of 100 jobs are queued", inputs=(replace(INPUT, missing=2),))
    said = {
        gate.name: gate.sentence
        for gate in walk(replace(facts, pilots=(PilotFact("A", 1, 5.0, 40, 3), PilotFact("B"))))
    }
    assert said["inputs"] == "4 of 10 files are left for jobs, 2 are missing"
    numbers = replace(facts, inputs=(replace(INPUT, numbers=True),))
    made_up = next(gate.sentence for gate in walk(numbers) if gate.name == "inputs")
    assert made_up == "4 of 10 parts of the work are left for jobs"
    assert said["throttle"] == "MC: 80 of 100 jobs are queued"
    assert said["agent"] == (
        "the last pass of the agent job_generator ended 1 s ago (took 0.25 s, 12 items); the next is due in 2 s"
    )
    assert "ended 0 s ago" in replace(AGENT, silent_s=-0.4).last_pass, "it has ended since the page was asked for"
    assert said["pilots"] == (
        "pilots ask at 1 of 2 sites where jobs wait: the last call came 5 s ago, at A; no pilot has asked for jobs at B for 3 h"
    )
    at_work = (PilotFact("A", 1, 3600.0, at_pilots=1),)
    assert {gate.name: gate.answer for gate in walk(replace(facts, pilots=at_work))}["pilots"] == "yes", (
        "they are at work"
    )


def test_all_gates_of_all_states_carry_registered_codes_and_say_something() -> None:
    for status in TaskStatus:
        for _, facts, _, _ in CASES:
            for ask in GATES:
                gate = ask(replace(facts, status=status))
                assert gate.answer in ("yes", "no", "not asked")
                assert bool(gate.code) is (gate.answer == "no"), (status, gate)
                if gate.code:
                    assert refusals.get(gate.code).advice


def headline(facts: WhyFacts) -> str:
    blocked = first_no(walk(facts))
    assert blocked
    return blocked.sentence


@pytest.mark.parametrize(
    ("errors", "due_s", "said"),
    [(1, None, "failed once: boom"), (2, 3.0, "failed 2 times in a row, the next is due in 3 s: boom")],
)
def test_an_agent_that_fails_is_said_to_fail_once_or_several_times(errors: int, due_s: float | None, said: str) -> None:
    agent = replace(AGENT, errors_in_a_row=errors, last_error="boom", due_s=due_s)
    assert headline(replace(GOOD, agent=agent)) == f"the agent job_generator has {said}"


def test_when_all_files_are_in_jobs_the_headline_is_of_the_jobs() -> None:
    facts = replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 2}, pilots=(CLOSED,))
    assert headline(facts) == "2 jobs wait at OFFQ: the queue is offline (“new switches until noon”)"
    gone = replace(CLOSED, waiting=1, status="", reason="")
    assert headline(replace(facts, pilots=(gone,))) == "1 job waits at OFFQ: the queue no longer exists"
    assert headline(replace(facts, pilots=(CLOSED, replace(gone, site="X")), jobs={"activated": 3, "running": 1})) == (
        "3 jobs wait at 2 queues that run none: at OFFQ: the queue is offline (“new switches until noon”); "
        "at X: the queue no longer exists; 1 other job has started"
    )
    assert headline(replace(facts, pilots=(PilotFact("A", 2, workers=1),))) == (
        "no pilot has asked for jobs at A for 3 h; 2 jobs wait there, 1 worker runs or waits"
    )
    asked = datetime(2026, 11, 22, 19, 54, 2, tzinfo=UTC)
    assert headline(replace(facts, pilots=(PilotFact("A", 2, 540.0, 347, called_at=asked),))) == (
        "no pilot has asked for jobs at A for 9 min (since 2026-11-22 19:54:02 UTC); 2 jobs wait there, 0 workers run or wait"
    )
    new = PilotFact("A", 2, known_s=250.0)
    assert headline(replace(facts, pilots=(new,))) == (
        "no pilot has asked for jobs at A yet: it was added 4 min ago; 2 jobs wait there, 0 workers run or wait"
    )
    assert "2 queues (A, B) for 3 h, or since the queues were added;" in headline(
        replace(facts, pilots=(new, PilotFact("B", 1)))
    )
    said = {
        gate.name: gate.sentence for gate in walk(replace(GOOD, inputs=(NONE_LEFT,), jobs={"running": 1}, pilots=()))
    }
    assert said["running"] == "1 job runs" and said["inputs"] == "all 10 files that may be used are in jobs or done"


def test_a_share_whose_target_is_0_is_named() -> None:
    facts = replace(GOOD, inputs=(NONE_LEFT,), jobs={"activated": 3}, share_zero="ZERO")
    assert headline(facts) == (
        "3 jobs are activated, none runs; the share ZERO has a target of 0, so that jobs of all other shares go first"
    )


def test_where_no_pilot_has_asked_for_minutes_jobs_that_wait_say_since_when() -> None:
    asked = datetime(2026, 11, 22, 19, 54, 2, tzinfo=UTC)
    facts = replace(
        GOOD, inputs=(NONE_LEFT,), jobs={"activated": 3}, pilots=(PilotFact("A", 3, 240.0, called_at=asked),)
    )
    since = "no pilot has asked for jobs at A for 4 min (since 2026-11-22 19:54:02 UTC)"
    assert headline(facts) == f"{since}; 3 jobs wait there, 0 workers run or wait"
    said = {gate.name: gate for gate in walk(facts)}
    assert (said["pilots"].answer, said["pilots"].code) == ("no", "no_pilot_came")
    assert (said["running"].answer, since in said["running"].sentence) == ("not reached", True)
    busy = replace(facts.pilots[0], at_pilots=2)
    assert headline(replace(facts, pilots=(busy,))).endswith(f"{since}, while they have 2 jobs there")
    assert headline(replace(facts, pilots=(replace(busy, silent_s=20.0),))) == "3 jobs are activated, none runs"


def test_a_paused_agent_says_by_whom_and_who_may_resume_it() -> None:
    pause = "by grace since 2026-11-22 19:54 UTC (“a move of Rucio”)"
    facts = replace(GOOD, agent=replace(AGENT, paused=True, pause=pause))
    blocked = first_no(walk(facts))
    assert blocked is not None and blocked.sentence == f"the agent job_generator is paused {pause}"
    assert blocked.who == "shifter" and "any shifter or administrator can do that" in blocked.advice


def test_while_scouts_run_the_others_files_wait_for_them() -> None:
    facts = replace(GOOD, status="scouting", inputs=(HELD_BACK,), jobs={"running": 10, "finished": 3})
    assert headline(facts) == "10 scouts must end first; 290 files wait for them"


def test_where_no_single_change_helps_it_is_said_what_a_site_would_have_to_publish() -> None:
    gate = Gate("sites", "A site accepts its jobs", "no", "no_gpu", "asks for GPU A100", remedies=())
    assert "(architectures, an entry of the type gpu). No single change was found" in gate.advice
    assert replace(gate, code="low_memory").advice.startswith("No single change was found")
    assert "more than one reason" not in gate.advice
    some = replace(gate, code="low_memory", untried=900).advice
    assert "No single change" not in some and "none was tried at 900 sites." in some


def test_a_pilot_is_to_be_started_where_most_jobs_wait() -> None:
    waiting = replace(GOOD, jobs={"activated": 4}, pilots=(PilotFact("A", 1), PilotFact("B", 3)))
    blocked = first_no(walk(waiting))
    assert blocked is not None and blocked.command.endswith("manage.py pilot --queue B")
