"""Agents: due times, leases, kicks, records. Time passes by moving the times in the database back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone
from django_q.models import OrmQ, Schedule

from jedisite.agents import agent_state, passes, registry
from jedisite.agents.registry import Pass
from jedisite.models import Agent, AgentPass
from tests.flow.threads import together

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "probe"


@pytest.fixture(autouse=True)
def rows(transactional_db: None) -> Iterator[None]:
    passes._last_kick.clear()
    yield
    registry.REGISTRY.pop(NAME, None)


@pytest.fixture
def make_agent() -> Callable[..., Agent]:
    """Register an agent and give it its row, the only one."""

    def make(run: Callable[[], Pass] = Pass, period_s: float = 10, lease_s: float = 60, **row: Any) -> Agent:
        registry.REGISTRY.pop(NAME, None)
        registry.agent(NAME, every=timedelta(seconds=period_s), title="Looks", lease_s=lease_s)(run)
        passes.synchronise_after_migrate()
        Agent.objects.exclude(name=NAME).update(paused=True)
        Agent.objects.filter(name=NAME).update(**row)
        return agent()

    return make


def agent() -> Agent:
    return Agent.objects.get(name=NAME)


def pass_time(seconds: float) -> None:
    """Move all times of the agent back, as if so much time had passed."""
    columns = (
        "due_at",
        "queued_at",
        "lease_until",
        "last_started_at",
        "last_ended_at",
        "last_recorded_at",
        "unended_since",
    )
    changes = ", ".join(f"{column} = {column} - %(s)s * interval '1 second'" for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE agents SET {changes} WHERE name = %(name)s", {"s": seconds, "name": NAME})  # noqa: S608


def seconds_to(column: str) -> float:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT extract(epoch FROM {column} - clock_timestamp()) FROM agents WHERE name = %s", [NAME])  # noqa: S608
        return float(cursor.fetchone()[0])


def test_every_registered_agent_has_its_row_and_its_schedule() -> None:
    passes.synchronise_after_migrate()
    assert set(Agent.objects.values_list("name", flat=True)) == set(registry.REGISTRY)
    found = {s.name: s for s in Schedule.objects.all()}
    assert set(found) == {f"agent {name}" for name in registry.REGISTRY}
    for name in registry.REGISTRY:
        schedule = found[f"agent {name}"]
        assert (schedule.func, schedule.args) == ("jedisite.agents.passes.run_floor", f"'{name}'")
        assert (schedule.schedule_type, schedule.minutes, schedule.repeats) == (Schedule.MINUTES, 1, -1)


def test_what_an_operator_has_set_outlives_the_next_migration(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=10)
    Agent.objects.filter(name=NAME).update(period_s=77, paused=True)
    passes.synchronise_after_migrate()
    assert (agent().period_s, agent().paused) == (77, True)
    assert Schedule.objects.filter(name=f"agent {NAME}").count() == 1


def test_a_due_agent_is_taken_once_and_is_due_again_after_its_period(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=10)
    assert passes.take_due() == [NAME]
    assert passes.take_due() == []
    assert 8 < seconds_to("due_at") <= 10
    passes.run_agent(NAME)
    assert passes.take_due() == []
    pass_time(11)
    assert passes.take_due() == [NAME]


def test_tickers_at_once_take_each_due_agent_once(make_agent: Callable[..., Agent]) -> None:
    make_agent()
    Agent.objects.update(paused=False)
    taken = together(*([passes.take_due] * 4))
    assert sorted(name for part in taken for name in part) == sorted(registry.REGISTRY)


def test_a_pass_that_nobody_starts_is_handed_out_again(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=10)
    passes.take_due()
    pass_time(passes.QUEUED_FOR_S - 2)
    assert passes.take_due() == []
    pass_time(3)
    assert passes.take_due() == [NAME]


def test_the_ticker_hands_due_agents_to_the_queue(make_agent: Callable[..., Agent]) -> None:
    make_agent()
    assert passes.tick() == [NAME]
    (queued,) = OrmQ.objects.all()
    assert queued.task["func"] == "jedisite.agents.passes.run_agent"
    assert queued.task["args"] == (NAME,)


def test_a_kick_makes_an_agent_due_when_the_transaction_commits_and_not_before(
    make_agent: Callable[..., Agent],
) -> None:
    make_agent(period_s=100)
    passes.take_due()
    passes.run_agent(NAME)
    with transaction.atomic():
        passes.kick(NAME)
        assert seconds_to("due_at") > 50
    assert passes.take_due() == [NAME]


def test_a_kick_of_a_transaction_that_is_rolled_back_does_nothing(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=100)
    passes.take_due()
    passes.run_agent(NAME)
    with transaction.atomic():
        passes.kick(NAME)
        transaction.set_rollback(True)
    assert passes.take_due() == []


def test_a_kick_while_a_pass_holds_the_lease_makes_the_agent_run_again_afterwards(
    make_agent: Callable[..., Agent],
) -> None:
    def run() -> Pass:
        passes.kick(NAME)
        assert passes.take_due() == [], "the lease is held"
        return Pass()

    make_agent(run, period_s=100)
    passes.take_due()
    passes.run_agent(NAME)
    assert agent().last_error == ""
    assert passes.take_due() == [NAME]


def test_a_kick_between_handing_out_and_start_is_not_lost(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=100)
    passes.take_due()
    passes.kick(NAME)
    assert passes.take_due() == [], "it is queued already"
    passes.run_agent(NAME)
    assert passes.take_due() == [NAME]


def test_a_busy_path_repeats_a_kick_only_after_its_time(make_agent: Callable[..., Agent]) -> None:
    make_agent(period_s=100)
    passes.take_due()
    passes.run_agent(NAME)
    passes.kick(NAME, at_most_every_s=60)
    assert passes.take_due() == [NAME]
    passes.run_agent(NAME)
    passes.kick(NAME, at_most_every_s=60)
    assert passes.take_due() == []


def test_a_pass_with_more_to_do_is_due_again_at_once(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(5, more=True), period_s=100)
    passes.take_due()
    passes.run_agent(NAME)
    assert passes.take_due() == [NAME]


def test_of_two_processes_at_once_one_runs_the_pass(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(1))
    fences = together(*(lambda: passes._take_lease(NAME, even_if_paused=False) for _ in range(4)))
    assert sorted(fence is not None for fence in fences) == [False, False, False, True]
    assert passes.run_agent(NAME) is None, "the lease is held"


def test_a_stale_lease_expires_and_its_old_holder_records_nothing(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(1, "the new one"), lease_s=60)
    old = passes._take_lease(NAME, even_if_paused=False)
    assert old is not None
    pass_time(59)
    assert passes.run_agent(NAME) is None
    pass_time(2)
    assert passes.run_agent(NAME) == 1
    before = Agent.objects.values().get(name=NAME)
    passes._release(NAME, old, 1.0, Pass(9, "the old one"), "")
    assert Agent.objects.values().get(name=NAME) == before
    assert list(AgentPass.objects.values_list("note", flat=True)) == ["the new one"]


def failing() -> Pass:
    raise RuntimeError("the catalogue is away")


def test_an_error_is_recorded_and_the_agent_is_tried_later_and_later(make_agent: Callable[..., Agent]) -> None:
    make_agent(failing, period_s=4)
    waits = []
    for number in range(1, 8):
        assert passes.run_agent(NAME) == 0
        assert agent().errors_in_a_row == number
        waits.append(round(seconds_to("due_at")))
        pass_time(100)
    assert waits == [4, 8, 16, 32, 60, 60, 60]
    assert "RuntimeError: the catalogue is away" in agent().last_error
    assert AgentPass.objects.filter(error__contains="the catalogue is away").count() == 7
    registry.REGISTRY[NAME] = registry.AgentSpec(NAME, Pass, 4, "Looks")
    passes.run_agent(NAME)
    assert (agent().errors_in_a_row, agent().last_error) == (0, "")


def test_time_in_which_nothing_ran_makes_no_agent_late(make_agent: Callable[..., Agent]) -> None:
    names = ["probe", "feeder", "adder"]
    now = timezone.now()
    for name, minutes in zip(names, (5, 20, -5), strict=True):
        Agent.objects.update_or_create(
            name=name, defaults={"period_s": 1, "due_at": now - timedelta(minutes=minutes), "paused": False}
        )
    Agent.objects.exclude(name__in=names).delete()

    def states() -> dict[str, str]:
        return {row.agent.name: row.state for row in agent_state.rows(Agent.objects.all(), timezone.now())}

    assert states() == {"probe": "late", "feeder": "late", "adder": "ok"}
    assert passes.count_anew() == 2
    assert states() == {"probe": "ok", "feeder": "ok", "adder": "ok"}
    assert list(Agent.objects.order_by("due_at").values_list("name", flat=True)) == ["feeder", "probe", "adder"]
    judged = agent_state.judge(Agent.objects.get(name="probe"), timezone.now() + timedelta(seconds=30))
    assert judged.state == "late", "it is late again when nothing takes it"


def test_passes_are_stuck_when_none_ends_from_the_first_on_and_not_after_a_break(
    make_agent: Callable[..., Agent],
) -> None:
    def is_stuck() -> bool:
        return agent_state.is_stuck(agent(), timezone.now())

    make_agent()
    for _ in range(2):  # the first was killed, and others take its place
        assert passes._take_lease(NAME, even_if_paused=False) is not None and not is_stuck()
        pass_time(200)
    assert is_stuck()
    passes.count_anew()
    assert not is_stuck(), "the site was started anew"
    assert passes.run_agent(NAME) == 0
    pass_time(7 * 86_400)  # paused, switched off, or waiting after an error
    assert passes._take_lease(NAME, even_if_paused=False) is not None
    assert not is_stuck()
    passes.count_anew()
    pass_time(200)
    passes._take_lease(NAME, even_if_paused=False)
    pass_time(101)
    assert is_stuck(), "what runs while a ticker starts still counts"


def test_a_paused_agent_is_neither_due_nor_run(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(1), paused=True)
    assert passes.take_due() == []
    assert passes.run_agent(NAME) is None
    assert passes.run_floor(NAME) is None
    assert passes.run_agent(NAME, even_if_paused=True) == 1


def test_the_floor_runs_a_pass_only_when_none_has_started_lately(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(1), period_s=5)
    assert passes.run_floor(NAME) == 1
    assert passes.run_floor(NAME) is None
    pass_time(19)
    assert passes.run_floor(NAME) is None
    pass_time(2)
    assert passes.run_floor(NAME) == 1


def test_the_floor_of_a_slow_agent_waits_for_its_period(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(1), period_s=300)
    assert passes.run_floor(NAME) == 1
    pass_time(200)
    assert passes.run_floor(NAME) is None
    pass_time(101)
    assert passes.run_floor(NAME) == 1


def test_the_floor_of_an_agent_without_a_row_does_nothing() -> None:
    assert passes.run_floor("nobody") is None


def test_quiet_passes_are_recorded_at_most_once_a_minute_and_busy_ones_always(make_agent: Callable[..., Agent]) -> None:
    items = iter([0, 0, 0, 3, 0, 0])
    make_agent(lambda: Pass(next(items)))
    for _ in range(5):
        passes.run_agent(NAME)
    assert list(AgentPass.objects.order_by("id").values_list("items", flat=True)) == [0, 3]
    pass_time(61)
    passes.run_agent(NAME)
    assert list(AgentPass.objects.order_by("id").values_list("items", flat=True)) == [0, 3, 0]
    assert agent().passes == 6


def test_the_row_says_what_the_last_pass_did(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(4, "four tasks"))
    passes.run_agent(NAME)
    row = agent()
    assert (row.last_items, row.lease_owner, row.lease_until, row.queued_at) == (4, None, None, None)
    assert row.last_started_at is not None
    assert row.last_ended_at is not None
    assert row.last_started_at <= row.last_ended_at
    recorded = AgentPass.objects.get()
    assert (recorded.agent, recorded.items, recorded.note, recorded.host) == (NAME, 4, "four tasks", passes.owner())


def test_an_unknown_agent_is_named(make_agent: Callable[..., Agent]) -> None:
    with pytest.raises(registry.UnknownAgentError, match="there is no agent nobody"):
        passes.run_agent("nobody")


def by_hand(*arguments: str) -> str:
    out = StringIO()
    call_command("agent", *arguments, stdout=out)
    return out.getvalue()


def test_a_pass_by_hand_says_what_it_did_also_when_the_agent_is_paused(make_agent: Callable[..., Agent]) -> None:
    make_agent(lambda: Pass(4, "four tasks"), paused=True)
    assert by_hand(NAME, "--once") == "4 items (four tasks)\n"


def test_a_pass_by_hand_shows_the_error(make_agent: Callable[..., Agent]) -> None:
    make_agent(failing)
    with pytest.raises(CommandError, match="the catalogue is away"):
        by_hand(NAME, "--once")


def test_a_pass_by_hand_names_who_runs_the_agent_now(make_agent: Callable[..., Agent]) -> None:
    make_agent()
    passes._take_lease(NAME, even_if_paused=False)
    with pytest.raises(CommandError, match=f"{NAME} is running elsewhere: {passes.owner()}"):
        by_hand(NAME, "--once")


def test_every_agent_can_be_run_by_hand_on_an_empty_installation() -> None:
    passes.synchronise_after_migrate()
    for name in registry.REGISTRY:
        # That nothing runs is a sample, too.
        assert by_hand(name, "--once").startswith("1 item" if name == "samples" else "0 items"), name
    assert all(name in by_hand() for name in registry.REGISTRY)
