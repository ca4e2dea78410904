import json
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from django.core.management import CommandError, call_command

from brokerage_app.policy.shares import Share
from brokerage_app.policy.workqueues import QueueRow
from tasks_app.labs.simulating.engine import Simulation
from tasks_app.labs.simulating.simulated_jobs import Outcome, Sample
from tasks_app.labs.simulating.simulation_report import WINDOW_S, due, fair, share_errors, summary
from tasks_app.labs.simulating.world import DAY, HOUR, QUEUES, SHARES, Campaign, World, usual_world

ENOUGH = 1e9


@pytest.fixture(scope="module")
def ran() -> tuple[World, Simulation, Outcome]:
    rng = Random(5)
    world = usual_world(rng, sites=6, slots=900, days=1.6)
    simulation = Simulation(world, rng)
    return world, simulation, simulation.run()


def test_slots_are_busy_while_work_waits_and_shares_get_their_parts(ran: tuple[World, Simulation, Outcome]) -> None:
    world, _, outcome = ran
    figures = summary(world.shares, outcome, world.changes)
    assert figures["busy_fraction"] >= 0.95
    assert figures["worst_share_error_pp"] <= 5
    assert figures["priority_inversions"] == 0
    assert 5 < figures["by_chance_percent"] < 15
    assert figures["jobs"] > 900
    assert not {"gb_moved", "busiest_links", "failed_transfers"} & set(figures), "no data moves"


def test_work_queues_get_their_parts_where_there_is_no_tree(tmp_path: Path) -> None:
    out = StringIO()
    options = {"by": "work-queues", "sites": 6, "slots": 900, "seed": 5, "no_plots": True}
    call_command("simulate", days=1.6, report=tmp_path, json=True, stdout=out, **options)
    figures = json.loads(out.getvalue().splitlines()[-1])
    assert figures["worst_share_error_pp"] <= 3
    assert figures["busy_fraction"] >= 0.95
    assert figures["priority_inversions"] == 0
    assert set(figures["median_wait_min"]) == {row.name for row in QUEUES if not row.is_partition}


def test_every_job_is_somewhere(ran: tuple[World, Simulation, Outcome]) -> None:
    assert_every_job_is_somewhere(ran[1])


def assert_every_job_is_somewhere(simulation: Simulation) -> None:
    outcome = simulation.outcome
    waiting = sum(len(heap) for site in simulation.sites.values() for heap in site.waiting.values())
    assigned = sum(jobs for site in simulation.sites.values() for jobs in site.assigned.values())
    assert waiting == len(simulation._jobs)
    assert (waiting + assigned, assigned) == (sum(simulation.queued.values()), sum(simulation.assigned.values()))
    assert outcome.made == outcome.dispatched + waiting + assigned + outcome.without_input
    assert simulation.busy == sum(simulation.running.values())
    for site in simulation.sites.values():
        assert site.free + sum(site.running.values()) == site.given.slots
        for share, heap in site.waiting.items():
            by_priority = {p: n for p, n in site.urgency.get(share, {}).items() if n}
            assert sum(by_priority.values()) == len(heap)


def test_the_same_seed_gives_the_same_run() -> None:
    def run(link_rate: float | None = None) -> list[Sample]:
        rng = Random(3)
        world = usual_world(rng, sites=3, slots=200, days=0.3)
        return Simulation(world, rng, link_rate=link_rate).run().samples

    assert run() == run()
    assert run(5) == run(5) != run()


def test_slots_are_divided_over_the_sites() -> None:
    world = usual_world(Random(1))
    assert (len(world.sites), sum(site.slots for site in world.sites)) == (50, 20_000)
    assert min(site.slots for site in world.sites) >= 20


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (dict.fromkeys("ABCD", ENOUGH), {"A": 30, "B": 20, "C": 45, "D": 5}),
        ({"A": ENOUGH, "C": ENOUGH, "D": ENOUGH}, {"A": 50, "B": 0, "C": 45, "D": 5}),
        ({"A": 10, "B": 10, "C": ENOUGH, "D": ENOUGH}, {"A": 10, "B": 10, "C": 72, "D": 8}),
        ({"A": 10, "B": 10, "C": 20, "D": 10}, {"A": 10, "B": 10, "C": 20, "D": 10}),
        ({"D": ENOUGH}, {"A": 0, "B": 0, "C": 0, "D": 100}),
        ({}, dict.fromkeys("ABCD", 0)),
    ],
)
def test_what_each_share_should_have(wanted: dict[str, float], expected: dict[str, float]) -> None:
    rows = [
        Share("X", 50),
        Share("Y", 50),
        Share("A", 3, parent="X"),
        Share("B", 2, parent="X"),
        Share("C", 9, parent="Y"),
        Share("D", 1, parent="Y"),
    ]
    assert fair(rows, 100, wanted) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (dict.fromkeys(("one", "two", "alone"), ENOUGH), {"one": 42, "two": 18, "alone": 40}),
        ({"two": ENOUGH, "alone": ENOUGH}, {"one": 0, "two": 60, "alone": 40}),
        ({"one": 10, "two": 20, "alone": ENOUGH}, {"one": 10, "two": 20, "alone": 70}),
        ({"alone": ENOUGH}, {"one": 0, "two": 0, "alone": 100}),
    ],
)
def test_what_each_work_queue_should_have(wanted: dict[str, float], expected: dict[str, float]) -> None:
    rows = [
        QueueRow(1, "parts", "managed", "lab", share=60, partition_id=-1),
        QueueRow(2, "one", "managed", "lab", share=70, partition_id=1),
        QueueRow(3, "two", "managed", "lab", share=30, partition_id=1),
        QueueRow(4, "alone", "managed", "lab", share=40),
    ]
    assert due(rows, 100, wanted) == pytest.approx(expected)


def test_stretchable_work_queues_get_first_what_is_left() -> None:
    rows = [
        QueueRow(1, "idle", "managed", "lab", share=50),
        QueueRow(2, "plain", "managed", "lab", share=30),
        QueueRow(3, "stretches", "managed", "lab", share=20, stretchable=True),
    ]
    full = {"plain": ENOUGH, "stretches": ENOUGH}
    assert due(rows, 100, full) == pytest.approx({"idle": 0, "plain": 30, "stretches": 70})
    assert due(rows, 100, {**full, "stretches": 40}) == pytest.approx(
        {"idle": 0, "plain": 60, "stretches": 40}, abs=0.5
    )


def test_errors_are_told_apart_by_whether_demand_has_just_changed() -> None:
    rows = [Share("A", 1), Share("B", 1)]
    change = 2 * DAY
    samples = [
        Sample(at, {"A": 60.0, "B": 40.0}, {"A": ENOUGH, "B": ENOUGH}, 100, 100, 5)
        for at in (DAY, change + HOUR, change + 9 * HOUR)
    ]
    errors = share_errors(rows, samples, [0.0, change])
    assert {(e.start // WINDOW_S, e.settled, e.off_by) for e in errors} == {
        (4, True, 10),
        (8, False, 10),
        (9, True, 10),
    }


def test_a_campaign_has_a_gap() -> None:
    campaign = Campaign(1.0, 5.0, gap=(2.0, 3.0))
    assert [campaign(day * DAY) > 0 for day in (0.5, 1.0, 2.0, 2.9, 3.0, 5.0)] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]


def test_the_command_writes_a_report_with_plots(tmp_path: Path) -> None:
    out = StringIO()
    call_command("simulate", sites=3, slots=200, days=1.6, seed=2, report=tmp_path, json=True, stdout=out)
    figures = json.loads(out.getvalue().splitlines()[-1])
    assert {"worst_share_error_pp", "busy_fraction", "urgent_first", "seconds"} <= set(figures)
    assert "worst share error pp" in (tmp_path / "report.md").read_text()
    for picture in ("shares", "busy", "waits"):
        assert "<svg" in (tmp_path / f"{picture}.svg").read_text()
    assert all(share.name for share in SHARES)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"sites": 0}, "sites"),
        ({"slots": 10}, "slots"),
        ({"days": 1.4}, "days"),
        ({"link_rate": 0}, "link-rate"),
        ({"link_rate": float("nan"), "transfers": True}, "link-rate"),
    ],
)
def test_numbers_that_make_no_grid_are_refused(changes: dict[str, float], name: str) -> None:
    with pytest.raises(CommandError, match=f"--{name} is"):
        call_command("simulate", **changes)


def test_a_rate_of_links_over_which_nothing_goes_is_refused() -> None:
    with pytest.raises(CommandError, match="--link-rate has no effect without --transfers"):
        call_command("simulate", link_rate=5)
