"""One bad row stops no agent: it is left aside, longer each time, is named where people look, and the others go on."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.utils import timezone

from jedisite.agents import passes, troubles
from jedisite.agents.registry import Pass
from jedisite.agents.turns import TurnTooLongError, turn
from jedisite.models import Agent, Trouble
from tasks_app.agents import adder, attention, failures, feeder, job_generator, post_processor, refiner
from tasks_app.agents.watchdogs import auto_pause, exhausted, lost_jobs
from tasks_app.attention import rounds
from tasks_app.lifecycle import claims
from tasks_app.models import AttentionItem, Command, Job, JobEndDue, JobFailure, JobOutputReport, Task
from tests.flow.driving import add_dataset, jobs, parameters, reads, status, submit, task, wake
from tests.flow.pilot import Pilot

pytestmark = pytest.mark.usefixtures("tables")
ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def planted(table: str, key: str, number: int, column: str) -> Iterator[None]:
    """The database refuses every change of one column of a row: what an agent meets that nobody has foreseen."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN IF NEW.{key} = {number} THEN RAISE EXCEPTION 'planted at %', NEW.{key}; END IF; RETURN NEW; END $$;
                CREATE TRIGGER planted BEFORE INSERT OR UPDATE OF {column} ON {table} FOR EACH ROW EXECUTE FUNCTION planted()"""
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION planted CASCADE")


def registered(name: str, priority: int) -> int:
    add_dataset(f"{name}.in", 2)
    return submit(parameters(name, reads(f"{name}.in"), nFilesPerJob=1, taskPriority=priority), priority=priority)


AGENTS: list[tuple[str, list[Callable[[], Pass]], Callable[[], Pass], str]] = [
    ("refiner", [], refiner.run, "defined"),
    ("feeder", [refiner.run], feeder.run, "ready"),
    ("job_generator", [refiner.run, feeder.run], job_generator.run, "running"),
    ("post_processor", [refiner.run], post_processor.run, "aborted"),
]


@pytest.mark.parametrize(("name", "before", "run", "to"), AGENTS, ids=[case[0] for case in AGENTS])
def test_a_task_at_which_an_agent_fails_is_left_aside_and_the_others_go_on(
    name: str, before: list[Callable[[], Pass]], run: Callable[[], Pass], to: str
) -> None:
    bad, good = registered("lab.bad", 900), registered("lab.good", 100)
    for agent in before:
        agent()
    if name == "post_processor":
        Task.objects.filter(pk__in=[bad, good]).update(status="toabort")
    was = status(bad)
    table, column = ("jedi_output_template", "serialnr") if name == "job_generator" else ("jedi_tasks", "status")
    with planted(table, "jeditaskid", bad, column):
        run()
        assert (status(bad), status(good)) == (was, to)
        (row,) = Trouble.objects.all()
        assert (row.agent, row.kind, row.subject, row.task_id, row.failures) == (name, "task", bad, bad, 1)
        assert f"planted at {bad}" in row.error and "\n" not in row.error
        assert f"planted at {bad}" in (task(bad).error_dialog or "") and task(bad).locked_by is None
        run()
        assert Trouble.objects.get().failures == 1, "it is not tried again before its time"
    Trouble.objects.update(next_try=timezone.now())
    run()
    assert status(bad) == to
    assert not Trouble.objects.exists()
    assert "planted" not in (task(bad).error_dialog or "")


def test_each_task_renews_the_lease_of_the_pass() -> None:
    passes.synchronise_after_migrate()
    fence, soon = passes._take_lease("goals", True), timezone.now() + timedelta(seconds=1)
    assert fence is not None
    left: list[bool] = []

    def work(task_id: int) -> int:
        until = Agent.objects.get(pk="goals").lease_until
        left.append(until is not None and until > soon)
        Agent.objects.filter(pk="goals").update(lease_until=soon)
        return 1

    Agent.objects.filter(pk="goals").update(lease_until=soon)
    token = passes._current.set(("goals", fence))
    try:
        assert troubles.each("goals", [1, 2, 3], work) == 3
    finally:
        passes._current.reset(token)
        passes._release("goals", fence, 1.0, Pass(), "")
    assert left == [True, True, True]


def waits() -> float:
    (row,) = Trouble.objects.all()
    return round((row.next_try - row.last_at).total_seconds() / 60, 1)


def test_the_waits_grow_to_an_hour_and_begin_anew_after_a_success() -> None:
    found = []
    for _ in range(9):
        troubles.note("feeder", "task", 7, "ValueError: x", 7)
        found.append(waits())
    assert found == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    troubles.note("feeder", "job", 7, "a job of the same number")
    troubles.note("refiner", "task", 7, "another agent")
    assert troubles.clear("feeder", "task", [7]) == [7]
    assert set(Trouble.objects.values_list("agent", "kind")) == {("feeder", "job"), ("refiner", "task")}
    Trouble.objects.all().delete()
    troubles.note("feeder", "task", 7, "ValueError: x", 7)
    assert waits() == 1


def test_only_the_agent_that_failed_leaves_the_task_aside() -> None:
    made, other = registered("lab.bad", 900), registered("lab.other", 100)
    troubles.note("refiner", "task", made, "ValueError: x", made)
    troubles.note("refiner", "job", other, "a job of the same number")
    assert [task_id for task_id, _ in claims.claim_tasks("p", ["registered"], 9, agent="refiner")] == [other]
    assert [task_id for task_id, _ in claims.claim_tasks("p", ["registered"], 9, agent="commando")] == [made]
    assert troubles.aside("refiner", "task", [made, other]) == {made}
    done: list[int] = []
    assert troubles.each("refiner", [made, other], lambda task_id: done.append(task_id) or 3) == 3
    assert done == [other]


def test_each_goes_on_after_a_task_that_fails() -> None:
    def work(task_id: int) -> int:
        if task_id == 2:
            raise KeyError("x")
        return task_id

    troubles.note("merger", "task", 3, "ValueError: long ago", 3)
    Trouble.objects.update(next_try=timezone.now() - timedelta(seconds=1))
    assert troubles.each("merger", [1, 2, 3], work) == 4
    (row,) = Trouble.objects.all()
    assert (row.subject, row.error) == (2, "KeyError: 'x'"), "and what succeeds is in no trouble any more"


def failing(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[int]:
    """Tasks that are all to be paused: the first two fail too much, the third does the same as the second."""
    made = [make_task(vo="lab", prod_source_label="user", request_type=kind) for kind in ("a", "b", "b")]
    for one in made[:2]:
        make_job(task_id=one.id, status="failed")
        make_job(task_id=one.id, status="activated")
    return [one.id for one in made]


def undecided(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[int]:
    long_ago = timezone.now() - timedelta(days=400)
    return [make_task(status="exhausted", state_change_time=long_ago).id for _ in range(3)]


@pytest.mark.parametrize(
    ("scene", "agent"), [(failing, auto_pause), (undecided, exhausted)], ids=["failing", "undecided"]
)
def test_a_task_that_takes_no_command_keeps_none_from_the_others(
    scene: Any, agent: Any, make_task: Callable[..., Task], make_job: Callable[..., Job], settings: Any
) -> None:
    settings.JEDI_LIMITS = {
        "MAX_JOB_FAILURE_RATE_TO_PAUSE_user": 0.9,
        "MIN_JOBS_TO_PAUSE": 1,
        "MIN_REMAINING_JOBS_TO_PAUSE": 1,
    }
    bad, *others = scene(make_task, make_job)
    with planted("task_commands", "comm_task", bad, "comm_status"):
        assert agent.run().items == 2
        assert list(Command.objects.order_by("id").values_list("task_id", flat=True)) == others
        assert [(row.agent, row.subject) for row in Trouble.objects.all()] == [(agent.ME, bad)]
        assert agent.run().items == 0 and Trouble.objects.get().failures == 1
    Trouble.objects.update(next_try=timezone.now())
    assert agent.run().items == 1 and not Trouble.objects.exists()


def running_jobs(name: str, number: int) -> list[Job]:
    add_dataset(f"{name}.in", number)
    made = submit(parameters(name, reads(f"{name}.in"), nFilesPerJob=1))
    for run in (refiner.run, feeder.run, job_generator.run):
        run()
    return jobs(made)


def test_a_report_that_cannot_be_booked_holds_up_no_other() -> None:
    made = running_jobs("lab.t", 5)
    pilot = Pilot()
    pilot.work()
    assert JobOutputReport.objects.count() == 5
    bad = made[2].id
    with planted("jobs", "pandaid", bad, "endtime"):
        adder.run()
        assert list(JobOutputReport.objects.values_list("id", flat=True)) == [bad]
        assert (Trouble.objects.get().agent, Trouble.objects.get().subject) == ("adder", bad)
        attention.run()
        assert str(bad) in AttentionItem.objects.get(kind="trouble").sentence
        adder.run()
        assert Trouble.objects.get().failures == 1
    Trouble.objects.update(next_try=timezone.now())
    adder.run()
    adder.run()
    assert not JobOutputReport.objects.exists() and not Trouble.objects.exists()
    assert set(Job.objects.values_list("status", flat=True)) == {"finished"}


def test_a_silent_job_that_cannot_be_ended_holds_up_no_other() -> None:
    made = running_jobs("lab.t", 3)
    Job.objects.update(status="running", heartbeat_at=timezone.now() - timedelta(days=2))
    with planted("jobs", "pandaid", made[0].id, "endtime"):
        lost_jobs.run()
        assert [job.status for job in Job.objects.order_by("id")] == ["running", "failed", "failed"]
        assert Trouble.objects.get().subject == made[0].id


def test_an_end_that_cannot_be_counted_holds_up_no_other() -> None:
    made = running_jobs("lab.t", 3)
    Job.objects.update(status="failed", state_change_time=timezone.now())
    JobEndDue.objects.bulk_create([JobEndDue(id=job.id) for job in made], ignore_conflicts=True)
    with planted("job_failures", "pandaid", made[1].id, "pandaid"):
        failures.run()
    assert set(JobFailure.objects.values_list("id", flat=True)) == {made[0].id, made[2].id}
    assert list(JobEndDue.objects.values_list("id", flat=True)) == [made[1].id]


def test_a_trouble_that_nobody_met_again_is_forgotten() -> None:
    troubles.note("feeder", "task", 7, "ValueError: x", 7)
    troubles.note("feeder", "task", 8, "ValueError: x", 8)
    Trouble.objects.filter(subject=7).update(next_try=timezone.now() - timedelta(days=1, seconds=1))
    Trouble.objects.filter(subject=8).update(next_try=timezone.now() - timedelta(hours=23))
    attention.run_slow()
    assert list(Trouble.objects.values_list("subject", flat=True)) == [8]


def test_people_see_it_in_attention_and_on_the_page_of_why(api: Callable[..., Client]) -> None:
    made = registered("lab.bad", 900)
    with planted("jedi_tasks", "jeditaskid", made, "status"):
        refiner.run()
    attention.run()
    item = AttentionItem.objects.get(kind="trouble")
    assert item.path == f"/tasks/{made}/why/" and "the agent refiner has failed once" in item.sentence
    assert f"planted at {made}" in item.sentence
    blocked = api().get(f"/api/v2/tasks/{made}/why/").json()["blocked_by"]
    assert blocked["code"] == "agent_fails" and "refiner" in blocked["sentence"] and "planted" in blocked["sentence"]
    Trouble.objects.update(next_try=timezone.now())
    wake()
    refiner.run()
    attention.run()
    assert AttentionItem.objects.get(kind="trouble").gone_at is not None
    assert api().get(f"/api/v2/tasks/{made}/why/").json()["blocked_by"]["code"] != "agent_fails"


def test_a_rule_of_attention_that_fails_keeps_none_of_the_others_from_looking(
    make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    AttentionItem.objects.create(
        key="offline:A", kind="offline", tone="bad", sentence="x", since=timezone.now(), path="/"
    )
    troubles.note("feeder", "task", make_task().id, "ValueError: x")
    monkeypatch.setitem(rounds.QUICK, "offline", lambda now: (1 // 0 for _ in "a"))
    done = attention.run()
    assert set(AttentionItem.objects.filter(gone_at=None).values_list("kind", flat=True)) >= {"trouble", "offline"}
    assert "the rule offline failed: ZeroDivisionError" in done.note
    monkeypatch.undo()
    assert "failed" not in attention.run().note
    assert AttentionItem.objects.get(kind="offline").gone_at is not None, "what is not found any more is gone"


def loops(task_id: int, fence: int) -> bool:
    while True:
        time.sleep(0)


def asks_for_long(task_id: int, fence: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(60)")
    return True


@pytest.mark.parametrize("endless", [loops, asks_for_long])
def test_a_turn_that_takes_too_long_is_broken_off_and_the_others_have_theirs(
    endless: Callable[[int, int], bool], settings: Any
) -> None:
    settings.JEDI_TURN_S = 0.3
    bad, good = registered("lab.bad", 900), registered("lab.good", 100)
    claimed = claims.claim_tasks("p", ["registered"], 9, agent="refiner")

    def work(task_id: int, fence: int) -> bool:
        if task_id == bad:
            return endless(task_id, fence)
        claims.release_task(task_id, fence)
        return True

    assert claims.for_each(claimed, work, by="refiner") == 1
    (row,) = Trouble.objects.all()
    assert row.subject == bad and "longer than the 0.3 s that one task may take" in row.error
    assert task(bad).locked_by is None and task(good).locked_by is None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(60)%' AND state = 'active'"
        )
        assert cursor.fetchone() == (0,), "the server works on it no more"


def test_a_turn_leaves_the_timers_of_others_as_they_are(settings: Any) -> None:
    settings.JEDI_TURN_S = 0.2
    with pytest.raises(TurnTooLongError), turn("outer", 1):
        with turn("inner", 1):
            pass
        loops(1, 1)


def test_time_that_is_over_while_a_turn_ends_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JEDI_CLUSTER_PULSE", str(tmp_path / "pulse"))
    before, stop, over = signal.getsignal(signal.SIGALRM), signal.setitimer, [True]

    def just_before(which: int, seconds: float, *more: float) -> Any:
        if not seconds and over and over.pop():
            signal.raise_signal(signal.SIGALRM)
        return stop(which, seconds, *more)

    monkeypatch.setattr(signal, "setitimer", just_before)
    with pytest.raises(TurnTooLongError), turn("feeder", 1):
        assert len(list(tmp_path.iterdir())) == 1
    assert signal.getsignal(signal.SIGALRM) is before
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_into_the_time_of_a_pass_is_given_back_in_its_place_unless_another_has_it() -> None:
    made = [registered(f"lab.{n}", 100) for n in range(4)]
    due = dict(Task.objects.filter(pk__in=made).values_list("id", "next_check"))
    claimed = claims.claim_tasks("p", ["registered"], 9, agent="refiner")

    def slow(task_id: int, fence: int) -> None:
        time.sleep(0.06)
        claims.release_task(task_id, fence)
        # Meanwhile the watchdog has freed the last one, and another process claimed it.
        Task.objects.filter(pk=made[3]).update(fence=F("fence") + 1, locked_by="q")

    assert claims.for_each(claimed, slow, by="refiner", for_s=0.05) == 1
    rows = {task.id: task for task in Task.objects.filter(pk__in=made)}
    assert [rows[n].locked_by for n in made] == [None, None, None, "q"]
    assert [rows[n].next_check == due[n] for n in made] == [False, True, True, True]


def test_every_claim_names_the_agent_that_may_leave_a_task_aside() -> None:
    calls = [
        call
        for path in (ROOT / "tasks_app").rglob("*.py")
        for call in re.findall(r"(?<!def )claim_tasks\((?:[^()]|\([^()]*\))*\)", path.read_text())
    ]
    assert len(calls) > 15
    assert not [call for call in calls if "agent=" not in call]
