"""Data that moves in a simulation: links with rates and queues, and jobs that wait for them."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from django.core.management import call_command

from brokerage_app.policy.configuration import Configuration, Row
from tasks_app.domain.transfer_states import TransferKind
from tasks_app.labs.simulating.engine import Simulation
from tasks_app.labs.simulating.simulated_data import SimData
from tasks_app.labs.simulating.simulated_links import START, Links, SimFile
from tasks_app.labs.simulating.world import usual_world
from tasks_app.transfers.link_settings import settings_of
from tasks_app.transfers.rules.pace import MB, allowance
from tests.tasks_app.labs.test_simulation import assert_every_job_is_somewhere


class Clock:
    """Does what was asked for at its time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._numbers), act))

    def run(self) -> None:
        while self._events:
            self.now, _, act = heapq.heappop(self._events)
            act()


def links_of(clock: Clock, failing: float = 0.0, **parameters: object) -> Links:
    rows = [Row("jedi", "mover", key.replace("__", ":"), str(value), "float") for key, value in parameters.items()]
    return Links(settings_of(Configuration(tuple(rows))), Random(1), clock.at, lambda: clock.now, failing)


def ends_of(clock: Clock, links: Links, sizes_mb: list[float], sources: tuple[str, ...] = ("A",)) -> list[float]:
    """When files arrive that are asked for ten seconds apart."""
    ends = dict.fromkeys(range(len(sizes_mb)), -1.0)

    def send(n: int, size: float) -> None:
        def ended(is_there: bool) -> None:
            ends[n] = clock.now if is_there else float("inf")

        links.send(SimFile(TransferKind.COPY, sources, "B", size, ended))

    for n, size in enumerate(sizes_mb):
        clock.at(10.0 * n, lambda n=n, size=size: send(n, size))  # type: ignore[misc]
    clock.run()
    return list(ends.values())


@pytest.mark.parametrize("at_once", [1, 2, 4])
def test_files_arrive_when_the_allowances_of_the_movers_turns_have_brought_them(at_once: int) -> None:
    """Turns of a tenth of a second, by the rule that the mover obeys."""
    sizes = [300.0, 50.0, 120.0, 10.0, 700.0, 80.0]
    clock = Clock()
    links = links_of(clock, LINK_RATE=10, LINK_TRANSFERS=at_once)
    ends = ends_of(clock, links, sizes)
    pace = links.link("A", "B").pace
    turn, now, arrived = timedelta(seconds=0.1), START, dict[int, float]()
    copying: dict[int, SimpleNamespace] = {}
    while len(arrived) < len(sizes):
        asked = int((now - START).total_seconds() / 10) + 1
        for n in range(min(asked, len(sizes))):
            if n not in copying and n not in arrived and len(copying) < pace.at_once:
                copying[n] = SimpleNamespace(left=sizes[n] * MB, started=now, moved_at=now)
        now += turn
        active = len(copying)
        for n, one in list(copying.items()):
            one.left -= allowance(pace, active, one.started, one.moved_at, now) or 0
            one.moved_at = now
            if one.left <= 0:
                del copying[n]
                arrived[n] = (now - START).total_seconds()
    assert ends == pytest.approx([arrived[n] for n in range(len(sizes))], abs=1.5)


def test_a_link_without_a_rate_takes_no_time() -> None:
    clock = Clock()
    assert ends_of(clock, links_of(clock), [1e6, 1e6]) == [0.0, 10.0]


def test_a_file_comes_over_the_fastest_link_and_over_another_when_that_fails() -> None:
    clock = Clock()
    links = links_of(clock, failing=0.5, LINK_RATE=1, LINK_RATE_C__B=100)
    ends = ends_of(clock, links, [10.0] * 20, ("A", "C"))
    over = {source: link for (source, _), link in links.links.items()}
    assert over["C"].files > over["A"].files > 0
    assert sum(link.files + link.lost for link in over.values()) == 20
    assert sum(link.failed for link in over.values()) > 5
    assert sorted(end < float("inf") for end in ends).count(False) == sum(link.lost for link in over.values())


def test_a_file_that_always_fails_is_given_up_after_its_attempts_and_their_waits() -> None:
    clock = Clock()
    links = links_of(clock, failing=1.0, TRANSFER_ATTEMPTS=3, TRANSFER_RETRY=60)
    assert ends_of(clock, links, [1.0]) == [float("inf")]
    link = links.link("A", "B")
    assert (link.failed, link.lost, link.files, clock.now) == (3, 1, 0, 60 + 120)


@pytest.mark.parametrize("rate", [50.0, 0.5])
def test_jobs_wait_for_their_input_and_every_job_is_somewhere(rate: float) -> None:
    rng = Random(5)
    world = usual_world(rng, sites=6, slots=300, days=0.5)
    simulation = Simulation(world, rng, link_rate=rate)
    outcome = simulation.run()
    assert_every_job_is_somewhere(simulation)
    assert isinstance(simulation.data, SimData) and outcome.links is not None
    open_files = sum((link.open for link in simulation.data.links.links.values()), Counter[TransferKind]())
    transferring = sum(jobs for site in simulation.sites.values() for jobs in site.transferring.values())
    assert open_files[TransferKind.GATHER] == transferring
    assert open_files[TransferKind.COPY] == sum(simulation.assigned.values())
    copied = [wait / 60 for wait in outcome.transfer_waits[TransferKind.COPY]]
    assert copied and outcome.transfer_waits[TransferKind.GATHER]
    if rate < 1:
        assert max(copied) > 60, "files wait long for slow links"
        assert sum(simulation.assigned.values()) > 50


def test_shares_get_their_parts_while_data_moves_and_the_report_tells_of_it(tmp_path: Path) -> None:
    out = StringIO()
    options = {"sites": 12, "slots": 1200, "seed": 5, "no_plots": True, "transfers": True}
    call_command("simulate", days=1.6, report=tmp_path, json=True, stdout=out, **options)
    figures = json.loads(out.getvalue().splitlines()[-1])
    assert figures["worst_share_error_pp"] <= 3
    assert figures["busy_fraction"] >= 0.95
    assert figures["inputs_copied"] > 100 and figures["outputs_gathered"] > 100
    assert figures["gb_moved"] > 100 and figures["median_wait_for_input_min"] > 0
    assert figures["failed_transfers"] > figures["transfers_given_up"]
    first = figures["busiest_links"][0]
    page = (tmp_path / "report.md").read_text()
    assert f"| {first['source']} | {first['destination']} | {first['mbps']} | {first['gb']} |" in page
    assert "| gb moved |" in page and "links of 100 MB/s" in page
