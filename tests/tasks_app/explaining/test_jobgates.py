from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jedisite import refusals
from tasks_app.domain.states import JobStatus
from tasks_app.explaining.rules.answers import first_no
from tasks_app.explaining.rules.job_gates import GATES, ChosenFact, JobFacts, Lacking, QueueFact, walk
from tasks_app.explaining.rules.wait_facts import PilotFact

AT = datetime(2026, 1, 1, tzinfo=UTC)
CHOSEN = ChosenFact(77, AT, 2, 5, 1.25)
PILOT = PilotFact("A", 1, 10.0, 40, 3)
ACTIVE = JobFacts("activated", "A", {"activated": AT}, AT, AT, chosen=CHOSEN, pilot=PILOT)

CASES = [
    ("next in line", ACTIVE, "sent", "no_job_runs"),
    ("no site", replace(ACTIVE, site=""), "brokered", "no_site_chosen"),
    (
        "library",
        replace(ACTIVE, status="defined", builder=(5, "running"), reached={}),
        "activated",
        "job_waits_for_library",
    ),
    ("input", replace(ACTIVE, status="assigned", reached={}), "activated", "job_waits_for_input"),
    ("throttled", replace(ACTIVE, status="throttled", reached={}), "activated", "jobs_not_activated"),
    ("offline", replace(ACTIVE, pilot=replace(PILOT, status="offline")), "queue", "jobs_at_closed_queue"),
    ("paused, no pilots", replace(ACTIVE, pilot=PilotFact("A", 1, status="paused")), "queue", "jobs_at_closed_queue"),
    ("no such queue", replace(ACTIVE, pilot=replace(PILOT, status="")), "queue", "jobs_at_closed_queue"),
    ("storage full", replace(ACTIVE, pilot=replace(PILOT, shut="DISK is full")), "queue", "jobs_at_shut_storage"),
    ("no pilots", replace(ACTIVE, pilot=None), "pilots", "no_pilot_came"),
    ("silent pilots", replace(ACTIVE, pilot=replace(PILOT, silent_s=1e6)), "pilots", "no_pilot_came"),
    ("others first", replace(ACTIVE, queue=QueueFact(7, "MC", 10_001)), "turn", "jobs_go_first"),
    ("no walls", replace(ACTIVE, lacking=Lacking("bwrap is not installed")), "turn", "job_unwalled"),
    ("no channel", replace(ACTIVE, lacking=Lacking("", "its pilots are PanDA's")), "turn", "job_without_channel"),
    ("sent", replace(ACTIVE, status="sent"), "running", "job_starts"),
    ("running", replace(ACTIVE, status="running", silent_s=5.0), "", ""),
    ("at its limit", replace(ACTIVE, status="running", silent_s=60.0, timeout_s=60, counted_s=60.0), "", ""),
    (
        "lost",
        replace(ACTIVE, status="running", silent_s=61.0, timeout_s=60, counted_s=61.0),
        "running",
        "job_lost_heartbeat",
    ),
    ("holding", replace(ACTIVE, status="holding"), "outputs", "job_is_booked"),
    ("transferring", replace(ACTIVE, status="transferring"), "outputs", "job_output_moves"),
    ("merging", replace(ACTIVE, status="merging", merging="waits for job 9"), "outputs", "job_output_merges"),
    ("finished", replace(ACTIVE, status="finished"), "", ""),
    ("failed", replace(ACTIVE, status="failed", error="boom"), "alive", "job_ended_badly"),
    ("cancelled", replace(ACTIVE, status="cancelled"), "alive", "job_ended_badly"),
]


def test_a_job_that_others_go_before_says_when_no_pilot_asks() -> None:
    silent = replace(ACTIVE, queue=QueueFact(7, "MC", 10_001), pilot=replace(PILOT, silent_s=240.0, at_pilots=2))
    blocked = first_no(walk(silent))
    assert blocked is not None
    assert blocked.sentence.endswith(f"; no pilot has asked for jobs at {ACTIVE.site} for 4 min")


@pytest.mark.parametrize(("facts", "name", "code"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_the_first_no_is_what_the_job_waits_for(facts: JobFacts, name: str, code: str) -> None:
    blocked = first_no(walk(facts))
    assert (blocked.name if blocked else "", blocked.code if blocked else "") == (name, code)


def test_where_no_pilot_asks_the_command_that_starts_one_makes_its_token() -> None:
    """The name of a queue is one word of the shell, whatever stands in it."""
    blocked = first_no(walk(replace(ACTIVE, site="A;rm x", pilot=None)))
    assert blocked is not None
    token = ".venv/bin/python manage.py token pilot --site 'A;rm x'"
    assert blocked.command == f"JEDI_PILOT_TOKEN=$({token}) .venv/bin/python manage.py pilot --queue 'A;rm x'"
    assert "manage.py local_workers" in blocked.advice and "`" not in blocked.advice and "NAME" not in blocked.advice


def test_outputs_of_a_job_that_failed_are_not_said_to_wait_for_its_payload() -> None:
    said = {status: walk(replace(ACTIVE, status=status))[-1].sentence for status in ("failed", "running")}
    assert said == {"failed": "the job is failed", "running": "the payload has not ended"}


def test_nothing_is_said_of_pilots_before_a_job_waits_for_one() -> None:
    for before in ("assigned", "defined", "pending", "throttled"):
        gates = {gate.name: gate for gate in walk(replace(ACTIVE, status=before, reached={}, pilot=None))}
        assert (gates["pilots"].answer, gates["pilots"].sentence) == (
            "not asked",
            "the job is not queued at its site yet",
        )


def test_a_job_whose_payload_did_not_begin_is_not_said_to_have_run() -> None:
    failed = replace(ACTIVE, status="failed", reached={"activated": AT, "sent": AT, "running": AT}, error="no input")
    said = {why: walk(replace(failed, not_begun=why))[7] for why in ("", "its input could not be read")}
    ran, not_run = said.values()
    assert (ran.answer, ran.sentence) == ("yes", "it ran")
    assert (not_run.answer, not_run.sentence) == ("not asked", "it did not run: its input could not be read")


def test_gates_say_their_numbers() -> None:
    said = {
        gate.name: gate.sentence
        for gate in walk(replace(ACTIVE, queue=QueueFact(7, "MC", 10_001), pilot=replace(PILOT, status="test")))
    }
    assert said["brokered"] == "A was number 2 of 5 chosen sites, with weight 1.25 (decision 77)"
    assert said["queue"] == "the status of A is test"
    assert said["pilots"] == "the last call came 10 s ago; 3 workers run or wait in the batch system"
    one = {gate.name: gate.sentence for gate in walk(replace(ACTIVE, pilot=replace(PILOT, calls=1, workers=1)))}
    assert one["pilots"] == "the last call came 10 s ago; 1 worker runs or waits in the batch system"
    off = replace(ACTIVE, pilot=replace(PILOT, status="offline", reason="new switches."))
    assert walk(off)[3].sentence == "the job waits at A: the queue is offline (“new switches”)"
    assert said["turn"].startswith("10000+ jobs of its share go first")
    assert "; 7 jobs of shares that are served before go first, of MC the next" in said["turn"]
    one = {gate.name: gate.sentence for gate in walk(replace(ACTIVE, queue=QueueFact(0, "", 1)))}
    assert one["turn"] == "1 job of its share goes first: it has a higher priority, or the same and is older"
    one = {gate.name: gate.sentence for gate in walk(replace(ACTIVE, queue=QueueFact(1, "MC", 0)))}
    assert one["turn"] == "1 job of shares that are served before goes first, of MC the next"
    no_shares = replace(ACTIVE, queue=QueueFact(0, "", 1, urgent=2, kind=""))
    says = "2 jobs of urgent tasks go first, before all others"
    assert {gate.name: gate.sentence for gate in walk(no_shares)}["turn"] == (
        f"1 job goes first: it has a higher priority, or the same and is older; {says}"
    )


def test_all_gates_of_all_states_carry_registered_codes() -> None:
    for status in JobStatus:
        for _, facts, _, _ in CASES:
            for gate in walk(replace(facts, status=status)):
                assert bool(gate.code) is (gate.answer in ("no", "not reached")), (status, gate)
                assert not gate.code or refusals.get(gate.code).advice
    assert len(walk(ACTIVE)) == len(GATES)
