"""The choice of a nucleus: worked examples of the JEDI brokerage document, boundaries, and what always holds."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.advice.remedies import helping
from brokerage_app.advice.whatif import Conditions
from brokerage_app.brokers.production_task import (
    RULES,
    Decision,
    broker,
    is_responsible,
    needs_nucleus,
    pick,
    weigh,
)
from brokerage_app.brokers.production_task import decide as on_grid
from brokerage_app.cases.gathering import (
    NO_WORK,
    Gathering,
    Output,
    RemainingWork,
    endpoint_of,
    group_of,
    remaining_hs06s,
)
from brokerage_app.cases.nucleus_case import NucleusCase, TaskBrokerSettings, settings_of, storage_for
from brokerage_app.formulas.unified import parts_of
from brokerage_app.policy.configuration import DEFAULTS, Configuration
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint, Grid, Nucleus
from brokerage_app.vocabulary.verdict import Choice, Verdict

TB = 1024
MB_A_TB = 1024 * 1024
SETTINGS = TaskBrokerSettings()
GROUP = "share MC"
OUTPUTS = (Output(1, "mc.out", "ATLASDATADISK"), Output(2, "mc.log", "ATLASDATADISK"))
ROOMY = {"space_free_gb": 600.0 * TB, "space_expired_gb": 50.0 * TB, "space_total_gb": 2000.0 * TB}


def everywhere(queues: Sequence[SiteView]) -> Verdict:
    return Verdict(tuple(Choice(queue.name, 1.0) for queue in queues))


def nowhere(queues: Sequence[SiteView]) -> Verdict:
    return Verdict(skipped=tuple(Skip(queue.name, "low_memory", "too little") for queue in queues))


def grid_of(*names: str, **changes: Any) -> Grid:
    """Nuclei with a queue and a disk each; `changes` are of the endpoints, or `nucleus` for the nuclei."""
    of_nuclei = changes.pop("nucleus", {})
    to_nucleus = changes.pop("to_nucleus", {})
    return Grid(
        sites={f"{name}_Q": SiteView(f"{name}_Q", site=name, outputs=(f"{name}_DATADISK",)) for name in names},
        endpoints={f"{n}_DATADISK": Endpoint(f"{n}_DATADISK", site=n, **{**ROOMY, **changes}) for n in names},
        nuclei={
            name: Nucleus(
                name,
                outputs=(f"{name}_DATADISK",),
                inputs=(f"{name}_DATADISK",),
                default_output=f"{name}_DATADISK",
                **{"queues": (f"{name}_Q",), **of_nuclei},
            )
            for name in names
        },
        to_nucleus=to_nucleus,
    )


def data(size_mb: float, files: int, name: str = "mc.in", **replicas: Replica) -> InputData:
    """An input with a complete copy at a place that is no nucleus, and the given ones by name of the nucleus."""
    copies = {f"{name}_DATADISK": replica for name, replica in replicas.items()}
    return InputData(name, files, size_mb, is_primary=True, replicas={"REMOTE": Replica(files, size_mb), **copies})


def part(files: int, size_mb: float, **more: Any) -> Replica:
    return Replica(files, size_mb, complete=False, **more)


def decide(needs: TaskNeeds | None = None, grid: Grid | None = None, **more: Any) -> Decision:
    values: dict[str, Any] = {"job_check": everywhere, "draw": 0.0, **more}
    gathering = values.pop("gathering", Gathering(OUTPUTS, group=GROUP))
    settings = values.pop("settings", SETTINGS)
    world = grid or grid_of("A")
    world = replace(world, endpoints={"REMOTE": Endpoint("REMOTE", site="X"), **world.endpoints})
    return broker(needs or TaskNeeds(), world, gathering, settings, **values)


def code(decision: Decision) -> str:
    return decision.verdict.code


def work(hs06s: float, *, priority: int = 1000, group: str = GROUP, nucleus: str = "A") -> RemainingWork:
    return NO_WORK.plus(nucleus, group, priority, hs06s)


def test_space_that_the_work_at_a_nucleus_will_take_is_reckoned_with() -> None:  # T1, T2
    grid = grid_of("A", space_free_gb=300.0 * TB, space_expired_gb=20.0 * TB, space_total_gb=1000.0 * TB)
    case = NucleusCase(TaskNeeds(), grid, Gathering(OUTPUTS), SETTINGS, work(7e11))
    assert case.projected_gb("A") == 202546
    assert case.left_gb("A", grid.endpoints["A_DATADISK"]) == 125134
    assert code(decide(grid=grid, work=work(7e11))) == ""
    refused = decide(grid=grid, work=work(8e11)).verdict.skipped[0]
    assert refused.code == "nucleus_space" and refused.values[:2] == (102400, 96199)
    assert "327680 GB are usable, outputs of its tasks will take 231481 GB" in refused.detail


def test_space_counts_the_work_of_all_groups_and_priorities() -> None:
    grid = grid_of("A", space_free_gb=300.0 * TB, space_expired_gb=20.0 * TB, space_total_gb=1000.0 * TB)
    some = work(5e11, group="share other", priority=1).plus("A", GROUP, 1, 3e11)
    assert code(decide(grid=grid, work=some)) == "nucleus_space"


WEIGHTS: list[tuple[str, float | None, Replica | None, dict[str, float], float, bool, float]] = [
    ("T3 heavy", 250, part(8, 8 * MB_A_TB), {}, 200, False, 0.78),
    ("T3 heavy when it says nothing", None, part(8, 8 * MB_A_TB), {}, 200, False, 0.78),
    ("T4 not heavy", 200, part(8, 8 * MB_A_TB), {}, 200, False, 0.975),
    ("T5 on tape", 250, part(8, 8 * MB_A_TB, is_tape=True), {}, 200, False, 0.00078),
    ("T6 little work", 150, part(8, 8 * MB_A_TB), {}, 10, False, 3.9),
    ("T6 as today", 150, part(8, 8 * MB_A_TB), {}, 10, True, 195),
    ("T7 cutoff", 150, part(8, 8 * MB_A_TB), {"space_free_gb": 1500.0 * TB}, 200, False, 3.875),
    ("nothing known of space", 150, part(8, 8 * MB_A_TB), {"space_total_gb": 0.0}, 200, False, 0.0),
]


@pytest.mark.parametrize(("name", "io", "here", "space", "ahead", "legacy", "weight"), WEIGHTS)
def test_weight_of_a_nucleus(
    name: str, io: float | None, here: Replica, space: dict[str, Any], ahead: float, legacy: bool, weight: float
) -> None:
    grid = grid_of("A", **space)
    needs = TaskNeeds(io_intensity=io, priority=500, inputs=(data(10 * MB_A_TB, 10, A=here),))
    settings = replace(SETTINGS, legacy_rw=legacy)
    case = NucleusCase(needs, grid, Gathering(OUTPUTS, group=GROUP), settings, work(ahead))
    choice = weigh(case, grid.nuclei["A"])
    assert choice.weight == pytest.approx(weight)
    assert math.prod(value for _, value in choice.factors) == pytest.approx(weight)


def test_only_work_of_the_same_group_that_is_as_urgent_lowers_the_weight() -> None:
    grid = grid_of("A")
    some = work(1000, priority=500).plus("A", GROUP, 499, 9e6).plus("A", "share other", 900, 9e6)
    case = NucleusCase(TaskNeeds(priority=500), grid, Gathering(OUTPUTS, group=GROUP), SETTINGS, some)
    assert dict(weigh(case, grid.nuclei["A"]).factors)["1 / remaining work"] == 1 / 1000


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        # T8: 1.9 of 20 TB; the task reads too much to go without
        (
            TaskNeeds(io_intensity=250, inputs=(data(20 * MB_A_TB, 50, A=part(50, 1.9 * MB_A_TB)),)),
            "nucleus_input_size",
        ),
        (TaskNeeds(io_intensity=250, inputs=(data(20 * MB_A_TB, 50, A=part(50, 2 * MB_A_TB)),)), ""),
        # T9: below both thresholds
        (TaskNeeds(io_intensity=250, inputs=(data(0.9 * 1024, 50),)), ""),
        (TaskNeeds(io_intensity=250, inputs=(data(1024, 100),)), ""),
        (TaskNeeds(io_intensity=250, inputs=(data(1025, 100),)), "nucleus_input_size"),
        # T10: 40 of 500 files
        (TaskNeeds(io_intensity=250, inputs=(data(9e6, 500, A=part(40, 9e6)),)), "nucleus_input_files"),
        (TaskNeeds(io_intensity=250, inputs=(data(9e6, 500, A=part(50, 9e6)),)), ""),
        # T11, T12, T13: nobody has it
        (TaskNeeds(io_intensity=150, priority=500, inputs=(data(8000 * 1024, 50),)), ""),
        (TaskNeeds(io_intensity=200, priority=500, inputs=(data(10_000 * 1024, 50),)), ""),
        (TaskNeeds(io_intensity=None, priority=500, inputs=(data(8000 * 1024, 50),)), ""),
        (TaskNeeds(io_intensity=250, priority=800, inputs=(data(8000 * 1024, 50),)), ""),
        (TaskNeeds(io_intensity=250, priority=799, inputs=(data(8000 * 1024, 50),)), "nucleus_input_size"),
        (TaskNeeds(io_intensity=150, priority=500, inputs=(data(12_000 * 1024, 50),)), "nucleus_input_size"),
        # T14: one file is enough when the others are staged
        (
            TaskNeeds(io_intensity=250, prestaging=True, inputs=(data(9e6, 10_000, A=part(1, 1, is_tape=True)),)),
            "",
        ),
        (TaskNeeds(io_intensity=250, prestaging=True, inputs=(data(9e6, 10_000),)), "nucleus_input_size"),
        # waited for more than 7 days
        (TaskNeeds(io_intensity=250, frozen_s=7 * 86_400 + 1, inputs=(data(9e6, 50),)), ""),
        (TaskNeeds(io_intensity=250, frozen_s=7 * 86_400, inputs=(data(9e6, 50),)), "nucleus_input_size"),
        # database releases are everywhere
        (TaskNeeds(io_intensity=250, inputs=(data(9e6, 500, name="ddo.000001"),)), ""),
        (TaskNeeds(io_intensity=250, inputs=(data(9e6, 500, name="cond:ddo.000001"),)), ""),
    ],
)
def test_place_of_the_input(needs: TaskNeeds, expected: str) -> None:
    assert code(decide(needs)) == expected


def test_a_task_that_may_go_without_its_input_goes_where_it_is_if_it_is_somewhere() -> None:
    needs = TaskNeeds(io_intensity=150, priority=500, inputs=(data(8000 * 1024, 50, B=part(50, 8000 * 1024)),))
    decision = decide(needs, grid_of("A", "B"))
    assert [choice.site for choice in decision.verdict.chosen] == ["B"]
    assert not decision.note


def test_what_is_not_there_is_not_in_the_weight_once_the_input_need_not_be_there() -> None:
    needs = TaskNeeds(io_intensity=None, priority=500, inputs=(data(8000 * 1024, 5, A=part(0, 1, is_tape=True)),))
    decision = decide(needs)
    factors = dict(decision.verdict.chosen[0].factors)
    assert factors["local part of the input"] == factors["on tape"] == 1
    assert decision.note == (
        "No nucleus has enough of the input (5 files, 8000.0 GB); it need not be there with an I/O intensity of "
        "unknown size and priority 500."
    )


def test_a_small_input_that_no_nucleus_has_is_not_in_the_weights() -> None:
    needs = TaskNeeds(io_intensity=None, inputs=(data(4, 4),))
    chosen = decide(needs, grid_of("A", "B"), work=work(1000)).verdict.chosen
    assert [(c.site, c.weight) for c in chosen] == [("B", pytest.approx(3.9)), ("A", pytest.approx(0.195))]
    one_has_it = TaskNeeds(io_intensity=None, inputs=(data(4, 4, A=Replica(4, 4)),))
    assert {c.site: c.weight for c in decide(one_has_it, grid_of("A", "B")).verdict.chosen} == {
        "A": pytest.approx(3.9),
        "B": 0,
    }


def test_only_the_primary_input_counts_if_the_task_says_so() -> None:
    primary = data(9e6, 500, A=Replica(500, 9e6))
    secondary = replace(data(9e7, 500, name="mc.second"), is_primary=False)
    needs = TaskNeeds(io_intensity=250, inputs=(primary, secondary))
    assert code(decide(needs)) == "nucleus_input_size"
    assert code(decide(needs, gathering=Gathering(OUTPUTS, on_master=True))) == ""


def test_copies_of_a_dataset_are_not_put_together() -> None:
    grid = grid_of("A")
    nucleus = replace(grid.nuclei["A"], inputs=("A_DATADISK", "REMOTE2"))
    grid = replace(grid, nuclei={"A": nucleus})
    one = data(9e6, 500, A=part(30, 5e6))
    both = replace(one, replicas={**one.replicas, "REMOTE2": part(30, 5e6)})
    assert code(decide(TaskNeeds(io_intensity=250, inputs=(both,)), grid)) == "nucleus_input_files"


def test_a_task_whose_input_is_nowhere_complete_is_stopped_with_the_datasets_name() -> None:
    broken = InputData("mc.in", 10, 10.0, is_primary=True, replicas={"A_DATADISK": part(9, 9)})
    decision = decide(TaskNeeds(inputs=(broken,)))
    assert decision.verdict.stopped is not None and decision.drawn is None
    assert decision.sentence() == (
        "The input is complete nowhere: mc.in has 1 known replica, none is complete on a storage that can "
        "be read from outside."
    )
    assert code(decide(TaskNeeds(inputs=(replace(broken, distributed=True),)))) == ""
    down = replace(grid_of("A"), endpoints={"A_DATADISK": Endpoint("A_DATADISK", states={"read_wan": "OFF"}, **ROOMY)})
    whole = replace(broken, replicas={"A_DATADISK": Replica(10, 10)})
    unreadable = decide(TaskNeeds(inputs=(whole,)), down)
    assert code(unreadable) == "source_not_sending"
    says = "mc.in is complete only at A_DATADISK, where reading from outside (read_wan) is blacklisted."
    assert says in unreadable.sentence(), "it may be read at its own site all the same"
    off = Endpoint("A_DATADISK", states={"read_wan": "OFF", "read_lan": "OFF"}, **ROOMY)
    unreadable = decide(TaskNeeds(inputs=(whole,)), replace(down, endpoints={"A_DATADISK": off}))
    assert code(unreadable) == "input_in_downtime"
    assert "mc.in is complete only at A_DATADISK, which cannot be read now." in unreadable.sentence()


@pytest.mark.parametrize(
    ("queued", "t1_weight", "expected"),
    [(2000, None, ""), (2001, None, "nucleus_backlog"), (2001, 0, "nucleus_backlog"), (2001, -1, ""), (2000, -1, "")],
)  # T15
def test_backlog_of_transfers(queued: int, t1_weight: int | None, expected: str) -> None:
    grid = grid_of("A", to_nucleus={"A": {"Production Output": queued, "Production Input": 99_999}})
    assert code(decide(TaskNeeds(t1_weight=t1_weight), grid)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"nucleus": {"state": "INACTIVE"}}, "nucleus_inactive"),
        ({"type": "SCRATCHDISK"}, "nucleus_no_storage"),
        ({"states": {"read_wan": "OFF"}}, "nucleus_read_down"),
        ({"states": {"write_wan": "TEST"}}, "nucleus_write_down"),
        ({"states": {"read_lan": "OFF", "write_wan": "ON"}}, ""),
        ({"space_free_gb": 100.0 * TB, "space_expired_gb": 0.0}, ""),
        ({"space_free_gb": 100.0 * TB - 1, "space_expired_gb": 0.0}, "nucleus_space"),
        ({"space_free_gb": 101.0 * TB, "space_expired_gb": 0.0, "space_min_free_gb": 2.0 * TB}, "nucleus_space"),
        ({"space_free_gb": None}, "nucleus_space"),
    ],
)
def test_state_and_storage_of_a_nucleus(changes: dict[str, Any], expected: str) -> None:
    decision = decide(grid=grid_of("A", **changes))
    assert code(decision) == expected
    assert (decision.drawn is None) is bool(expected)


def test_a_nucleus_without_a_queue_for_the_jobs_is_skipped_and_says_what_its_queues_lack() -> None:
    def only_b(queues: Sequence[SiteView]) -> Verdict:
        return Verdict((Choice("B_Q", 1.0),), (Skip("A_Q", "low_memory", "needs {} MB, {} are there", (2, 1)),))

    decision = decide(grid=grid_of("A", "B"), job_check=only_b)
    assert [choice.site for choice in decision.verdict.chosen] == ["B"]
    skip = decision.verdict.skipped[0]
    assert (skip.site, skip.code) == ("A", "nucleus_no_queue")
    assert skip.detail == "at least 1 of its queues must accept the jobs, 0 of 1 do: A_Q: needs 2 MB, 1 are there"


def test_the_job_broker_is_asked_for_the_queues_of_the_nuclei_that_are_left_only() -> None:
    asked: list[str] = []

    def note(queues: Sequence[SiteView]) -> Verdict:
        asked.extend(queue.name for queue in queues)
        return everywhere(queues)

    grid = grid_of("A", "B")
    grid = replace(grid, nuclei={**grid.nuclei, "B": replace(grid.nuclei["B"], state="DOWN")})
    decide(grid=grid, job_check=note)
    assert asked == ["A_Q"]


def test_when_no_site_can_run_the_jobs_nothing_is_drawn() -> None:
    decision = decide(grid=grid_of("A", "B"), job_check=nowhere)
    assert decision.drawn is None
    assert decision.sentence() == (
        "All 2 nuclei were skipped: none of their queues takes the jobs. A_Q, B_Q: too little."
    )
    assert code(decision) == "low_memory"


class Sites(dict[str, SiteView]):
    """Queues that count how often somebody goes over all of them."""

    passes = 0

    def values(self) -> Any:
        Sites.passes += 1
        return super().values()

    def __iter__(self) -> Any:
        Sites.passes += 1
        return super().__iter__()


def passes(nuclei: int) -> int:
    grid = grid_of(*(f"N{number:02}" for number in range(nuclei)))
    grid = replace(grid, sites=Sites(grid.sites))
    Sites.passes = 0
    found = decide(grid=grid, job_check=nowhere)
    assert all(skip.detail.endswith(f"{skip.site}_Q: too little") for skip in found.verdict.skipped)
    return Sites.passes


def test_what_the_queues_of_many_nuclei_lack_is_said_with_as_few_passes_over_the_grid_as_of_one() -> None:
    assert passes(1) == passes(20)


def test_a_nucleus_that_has_no_queue_says_so() -> None:
    found = decide(grid=grid_of("A", nucleus={"queues": ()}), job_check=nowhere)
    assert found.sentence() == (
        "The only nucleus was skipped: 1 nucleus no queue. A: at least 1 of its queues must accept the jobs, 0 of 0 do."
    )


def cut(grid: Grid, name: str, **more: Any) -> Grid:
    """The queue of a nucleus as one that cuts its slots to size, with its variants."""
    queue = replace(grid.sites[f"{name}_Q"], capability="ucore", cores=4, **more)
    parts = parts_of(queue, DEFAULT_TABLE)
    sites = {**grid.sites, queue.name: replace(queue, is_parent=True), **{part.name: part for part in parts}}
    nucleus = replace(grid.nuclei[name], queues=(queue.name, *(part.name for part in parts)))
    return replace(grid, sites=sites, nuclei={**grid.nuclei, name: nucleus})


ROOM = {
    "max_memory_mb": 16_000,
    "max_walltime_s": 172_800,
    "pilots_3h": 5,
    "status": "online",
    "inputs": ("A_DATADISK",),
}
ASKS = TaskNeeds(vo="atlas", label="managed", memory_mb=1000, cpu_hs06s=100.0)


@pytest.mark.parametrize(
    ("needs", "queue", "blocking", "says", "advice"),
    [
        ({}, {"status": "offline"}, "site_offline", "the site's status is offline", "Have A_Q set online"),
        ({}, {"status": "paused"}, "site_paused", "the site's status is paused", "Have A_Q set online"),
        (
            {"memory_mb": 16_000},
            {},
            "low_memory",
            "needs 14400 MB, the site gives 4000 MB",
            "Ask for 4444 MB of memory at most (ramCount; now 16000)",
        ),
        (
            {"cpu_hs06s": 1e7},
            {},
            "short_walltime",
            "needs 10000000, the site gives 1555200 HS06 s in 172800 s",
            "Lower the cpuTime of the task to 15 % of what it is",
        ),
        (
            {"architecture": '{"gpu_spec": {"vendor": "nvidia"}}'},
            {"releases": ("ANY",)},
            "no_gpu",
            "GPU",
            "Kill the task and submit it again, under another name and without asking for a GPU",
        ),
        (
            {"trans_home": "Athena-24.0.1", "architecture": "x86_64-el9-gcc13-opt"},
            {"releases": ("OTHER",)},
            "no_release",
            "Athena",
            "Have the software installed and published at A_Q",
        ),
    ],
)
def test_where_the_queues_of_the_nuclei_decide_the_headline_and_the_advice_are_theirs(
    needs: dict[str, Any], queue: dict[str, Any], blocking: str, says: str, advice: str
) -> None:
    wants, world = replace(ASKS, **needs), cut(grid_of("A"), "A", **{**ROOM, **queue})

    def choose(needs: TaskNeeds, grid: Grid, configuration: Configuration) -> Verdict:
        return on_grid(needs, grid, configuration, Gathering(OUTPUTS, group=GROUP), draw=0.0, work=NO_WORK).verdict

    found = on_grid(wants, world, DEFAULTS, Gathering(OUTPUTS, group=GROUP), draw=0.0, work=NO_WORK)
    assert found.verdict.blocked is not None and found.verdict.code == blocking
    assert found.sentence().startswith("The only nucleus was skipped: none of its queues takes the jobs. A_Q: ")
    assert says in found.sentence()
    assert "0 of 1 do: A_Q: " in found.verdict.skipped[0].detail, "a queue and its variants are one"
    told = [one.sentence for one in helping(Conditions(wants, world, DEFAULTS), found.verdict.blocked, choose)]
    assert any(one.startswith(advice) and one.endswith("then A takes its jobs.") for one in told), told


def test_of_nuclei_that_are_skipped_for_several_reasons_the_last_decides() -> None:
    grid = grid_of("A", "B")
    full = replace(grid.endpoints["A_DATADISK"], space_free_gb=1.0, space_expired_gb=0.0)
    decision = decide(grid=replace(grid, endpoints={**grid.endpoints, "A_DATADISK": full}), job_check=nowhere)
    assert decision.sentence() == (
        "All 2 nuclei were skipped: 1 nucleus space; of the others none of their queues takes the jobs. B_Q: too little."
    )


CHAINS = [
    ("", "only", "nucleus_full_chain"),
    ("", "allow", ""),
    ("", "", ""),
    ("only", "only", ""),
    ("only", "allow", "nucleus_full_chain"),
    ("only", "", "nucleus_full_chain"),
    ("require", "only", ""),
    ("require", "allow", ""),
    ("require", "", "nucleus_full_chain"),
    ("capable", "only", "nucleus_full_chain"),
    ("capable", "allow", ""),
    ("capable", "", ""),
]


@pytest.mark.parametrize(("task", "bare", "expected"), CHAINS)
def test_whole_chains_without_a_parent(task: str, bare: str, expected: str) -> None:
    assert code(decide(TaskNeeds(full_chain=task), grid_of("A", nucleus={"bare": bare}))) == expected


@pytest.mark.parametrize("task", ["only", "require", "capable"])
def test_a_child_follows_its_parent_to_the_nucleus_that_keeps_the_chain(task: str) -> None:
    grid = grid_of("A", "B")
    grid = replace(grid, nuclei={n: replace(nucleus, bare="only") for n, nucleus in grid.nuclei.items()})
    follows = Gathering(OUTPUTS, parent_nucleus="B", parent_full_chain="require")
    decision = decide(TaskNeeds(full_chain=task), grid, gathering=follows)
    assert [choice.site for choice in decision.verdict.chosen] == ["B"]
    assert decision.verdict.skipped[0].detail == "the chain of the parent task stays at B"


def test_a_parent_that_is_at_a_usual_nucleus_or_asked_for_no_chain_binds_nobody() -> None:
    usual = Gathering(OUTPUTS, parent_nucleus="B", parent_full_chain="capable")
    assert len(decide(TaskNeeds(full_chain="capable"), grid_of("A", "B"), gathering=usual).verdict.chosen) == 2
    silent = Gathering(OUTPUTS, parent_nucleus="B")
    bare = grid_of("A", "B", nucleus={"bare": "allow"})
    assert len(decide(TaskNeeds(full_chain="capable"), bare, gathering=silent).verdict.chosen) == 2


def test_satellites_are_asked_for_whole_chains_only_and_if_they_keep_them() -> None:
    grid = grid_of("A", "S", "T", nucleus={"bare": "allow"})
    satellite = replace(grid.nuclei["S"], is_satellite=True)
    grid = replace(
        grid, nuclei={**grid.nuclei, "S": satellite, "T": replace(grid.nuclei["T"], is_satellite=True, bare="")}
    )
    assert [c.site for c in decide(grid=grid).verdict.chosen] == ["A"]
    assert {c.site for c in decide(TaskNeeds(full_chain="require"), grid).verdict.chosen} == {"A", "S"}


def test_outputs_of_whole_chains_go_to_the_secondary_nucleus() -> None:
    grid = grid_of("A", "B")
    grid = replace(grid, nuclei={**grid.nuclei, "A": replace(grid.nuclei["A"], bare="allow", secondary="B")})
    chain = decide(TaskNeeds(full_chain="require"), grid).drawn
    assert chain is not None and chain.nucleus == "A"
    assert {(d.destination, d.token) for d in chain.destinations} == {("nucleus:B", "dst:B_DATADISK/ATLASDATADISK")}
    usual = decide(TaskNeeds(), replace(grid, nuclei={"A": grid.nuclei["A"]})).drawn
    assert usual is not None and usual.destinations[0].destination == "nucleus:A"


@pytest.mark.parametrize(
    ("wants", "found"),
    [
        ("A_TAPE", "A_TAPE"),
        ("TAPE$", "A_TAPE"),
        ("ATLASDATATAPE", "A_TAPE"),
        ("DATADISK", "A_DATADISK"),
        ("ATLASDATADISK", "A_DATADISK"),
        ("", "A_DATADISK"),
        ("ATLASLOCALGROUPDISK", None),
        ("[", None),
    ],
)
def test_storage_that_a_token_asks_for(wants: str, found: str | None) -> None:
    grid = grid_of("A")
    nucleus = replace(grid.nuclei["A"], outputs=("A_DATADISK", "A_TAPE"))
    grid = replace(grid, endpoints={**grid.endpoints, "A_TAPE": Endpoint("A_TAPE", type="DATATAPE")})
    endpoint = storage_for(wants, nucleus, grid)
    assert (endpoint.name if endpoint else None) == found


@pytest.mark.parametrize(
    ("token", "old", "new"),
    [
        ("", None, "dst:A_DATADISK"),
        (None, None, "dst:A_DATADISK"),
        ("ATLASDATADISK", None, "dst:A_DATADISK/ATLASDATADISK"),
        ("dst:A_", None, "dst:A_DATADISK/dst:A_"),
        ("dst:OLD_DISK/ATLASDATADISK", "nucleus:OLD", "dst:A_DATADISK/ATLASDATADISK"),
        ("dst:OLD_DISK", "nucleus:OLD", "dst:A_DATADISK"),
    ],
)
def test_the_token_of_an_output_names_the_storage_before_what_was_asked_for(
    token: str | None, old: str | None, new: str
) -> None:
    output = Output.of(1, "out", token, old)
    drawn = decide(gathering=Gathering((output,))).drawn
    assert drawn is not None and [d.token for d in drawn.destinations] == [new]
    found = drawn.destinations[0]
    assert endpoint_of(found.destination, found.token) == "A_DATADISK"
    assert Output.of(1, "out", found.token, found.destination) == output


def test_a_dataset_with_an_endpoint_of_its_own_keeps_it() -> None:
    assert endpoint_of("LAB_DISK", "dst:OTHER/TOKEN") == "LAB_DISK" and endpoint_of(None, "dst:OTHER") == ""


@pytest.mark.parametrize(
    ("vo", "label", "expected"),
    [("atlas", "managed", True), ("atlas", "test", False), ("atlas", "user", False), ("lab", "managed", True)],
)
def test_who_gets_a_nucleus_is_configured(vo: str, label: str, expected: bool) -> None:
    changed = DEFAULTS.with_value("brokerage", "TASK_BROKER_test", "none", vo="atlas").with_value(
        "brokerage", "TASK_BROKER_managed", "production", vo="lab"
    )
    assert is_responsible(changed, vo, label) is expected
    assert is_responsible(DEFAULTS, "atlas", "test") and not is_responsible(DEFAULTS, "lab", "managed")


def test_outputs_that_stay_where_they_are_made_are_not_gathered() -> None:
    drawn = decide(gathering=Gathering((Output(1, "out", "ddd:SCRATCH"), Output(2, "log")))).drawn
    assert drawn is not None and [d.output.id for d in drawn.destinations] == [2]


def test_the_weight_is_that_of_the_storage_with_least_left() -> None:
    grid = grid_of("A")
    tape = Endpoint("A_TAPE", type="DATATAPE", space_free_gb=200.0 * TB, space_total_gb=2000.0 * TB)
    grid = replace(
        grid,
        endpoints={**grid.endpoints, "A_TAPE": tape},
        nuclei={"A": replace(grid.nuclei["A"], outputs=("A_DATADISK", "A_TAPE"))},
    )
    outputs = (Output(1, "out", "ATLASDATATAPE"), Output(2, "log", "ATLASDATADISK"))
    choice = decide(grid=grid, gathering=Gathering(outputs)).verdict.chosen[0]
    assert choice.weight == pytest.approx(0.1 * 200 / 50)


def test_a_nucleus_that_the_task_names_is_taken_untested() -> None:
    grid = grid_of("A", "B", nucleus={"state": "DOWN"})
    decision = decide(TaskNeeds(nucleus="B"), grid, job_check=nowhere)
    assert decision.drawn is not None and decision.drawn.nucleus == "B"
    assert decision.drawn.destinations[0].token == "dst:B_DATADISK/ATLASDATADISK"
    assert decision.sentence() == "B was chosen."


def test_a_task_may_name_a_satellite_but_no_place_that_is_not_known() -> None:
    grid = grid_of("A", "S")
    grid = replace(grid, nuclei={"A": grid.nuclei["A"]})
    drawn = decide(TaskNeeds(nucleus="S"), grid).drawn
    assert drawn is not None and drawn.destinations[0].destination == "nucleus:S"
    assert code(decide(TaskNeeds(nucleus="CERN"), grid)) == "nucleus_unknown"


def test_without_any_nucleus_the_task_is_stopped() -> None:
    assert code(decide(grid=Grid())) == "no_nucleus_known"


@pytest.mark.parametrize(
    ("draw", "site"), [(0.0, "A"), (0.59, "A"), (0.6, "A"), (0.61, "B"), (0.9, "B"), (0.91, "C"), (0.999, "C")]
)
def test_a_nucleus_is_drawn_in_proportion_to_its_weight(draw: float, site: str) -> None:
    some = [Choice("A", 6.0), Choice("B", 3.0), Choice("C", 1.0), Choice("D", 0.0)]
    choice, chance = pick(some, draw)
    assert choice.site == site and chance == choice.weight / 10


def test_nuclei_that_all_weigh_nothing_are_drawn_evenly() -> None:
    some = [Choice("A", 0.0), Choice("B", 0.0)]
    assert [pick(some, draw)[0].site for draw in (0.0, 0.49, 0.5, 0.99)] == ["A", "A", "B", "B"]


def test_the_sentence_of_a_decision_has_numbers() -> None:
    grid = grid_of("A", "B", "C")
    grid = replace(grid, nuclei={**grid.nuclei, "C": replace(grid.nuclei["C"], state="DOWN")})
    assert decide(grid=grid).sentence() == "A was drawn of 2 nuclei with a chance of 50%; skipped: 1 nucleus inactive."


@pytest.mark.parametrize(
    ("events", "used", "cpu", "unit", "expected"),
    [
        (1000, 400, 10, "HS06sPerEvent", 6000),
        (1000, 400, None, None, 180_000),
        (1000, 0, 5000, "mHS06sPerEvent", 5000),
        (10, 20, 7, None, 0),
        (10, 0, 0, None, 0),
    ],
)
def test_remaining_work(events: int, used: int, cpu: float | None, unit: str | None, expected: float) -> None:
    assert remaining_hs06s(events, used, cpu, unit) == expected


def test_tasks_of_a_resource_queue_compete_within_it_others_within_their_share() -> None:
    assert group_of("MC", "evgen") == group_of("MC", "reco") != group_of("MC", "evgen", is_resource=True)
    assert group_of("", "evgen") == group_of("MC", "evgen", is_resource=True)


@pytest.mark.parametrize(
    ("cloud", "nucleus", "destinations", "wanted"),
    [
        (None, None, [None], True),
        ("WORLD", "", ["nucleus:A"], True),
        ("WORLD", "A", ["nucleus:A", None], True),
        ("WORLD", "A", ["nucleus:A"], False),
        (None, "A", ["nucleus:A"], False),
        ("US", None, [None], False),
        ("US", "A", [None], True),
        ("US", "A", ["nucleus:A"], False),
    ],
)
def test_tasks_that_need_a_nucleus(
    cloud: str | None, nucleus: str | None, destinations: list[str | None], wanted: bool
) -> None:
    assert needs_nucleus(cloud, nucleus, destinations) is wanted
    assert needs_nucleus(cloud, nucleus, destinations, is_brokered=False) is (wanted and bool(nucleus))


def test_settings_are_those_of_the_share_and_the_vo() -> None:
    assert settings_of() == SETTINGS
    changed = DEFAULTS.with_value("taskbrokerage", "DISK_THRESHOLD_MC 16 simul", 7.0).with_value(
        "taskbrokerage", "NQUEUED_NUC_CAP", 5, vo="atlas"
    )
    settings = settings_of(changed, vo="atlas", share="MC 16 simul")
    assert (settings.disk_threshold_tb, settings.queued_cap) == (7.0, 5)
    other = settings_of(changed, vo="cms", share="MC 16")
    assert (other.disk_threshold_tb, other.queued_cap) == (100.0, 2000)


def test_every_rule_can_be_asked_of_every_nucleus() -> None:
    grid = grid_of("A", nucleus={"state": "DOWN"}, states={"write_wan": "OFF"})
    case = NucleusCase(TaskNeeds(), grid, Gathering(OUTPUTS), SETTINGS)
    skips = [rule.filter(case, grid.nuclei["A"]) for rule in RULES if rule.asked(case)]
    assert [skip.code for skip in skips if skip is not None] == ["nucleus_inactive", "nucleus_write_down"]
    assert [rule.filter.__name__ for rule in RULES if not rule.asked(case)] == ["can_run", "has_input"]


# What always holds.

NAMES = ("A", "B", "C", "D")
spaces = st.one_of(st.none(), st.integers(0, 3000 * TB).map(float))


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    nuclei, endpoints, sites, queued = {}, {}, {}, {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        disk = f"{name}_DATADISK"
        nuclei[name] = Nucleus(
            name,
            state=draw(st.sampled_from(["ACTIVE", "ACTIVE", "DOWN"])),
            queues=(f"{name}_Q",),
            outputs=draw(st.sampled_from([(disk,), (disk,), ()])),
            inputs=(disk,),
            default_output=disk,
            bare=draw(st.sampled_from(["", "only", "allow"])),
            secondary=draw(st.sampled_from(["", "", *NAMES])),
            is_satellite=draw(st.booleans()),
        )
        endpoints[disk] = Endpoint(
            disk,
            site=name,
            space_total_gb=draw(spaces),
            space_free_gb=draw(spaces),
            space_expired_gb=draw(spaces) or 0.0,
            states=draw(st.sampled_from([{}, {"read_wan": "OFF"}, {"write_wan": "ON"}])),
        )
        sites[f"{name}_Q"] = SiteView(f"{name}_Q", site=name)
        queued[name] = {"Production Output": draw(st.integers(0, 4000))}
    return Grid(sites=sites, endpoints=endpoints, nuclei=nuclei, to_nucleus=queued)


@st.composite
def tasks(draw: st.DrawFn, *, with_inputs: bool = True) -> TaskNeeds:
    inputs = []
    for number in range(draw(st.integers(0, 2)) if with_inputs else 0):
        files, size = draw(st.integers(0, 1000)), draw(st.integers(0, 10**8))
        places = draw(st.lists(st.sampled_from(NAMES), unique=True))
        copies = {
            f"{name}_DATADISK": Replica(
                draw(st.integers(0, files)), draw(st.integers(0, size)), draw(st.booleans()), draw(st.booleans())
            )
            for name in places
        }
        inputs.append(InputData(f"in{number}", files, size, number == 0, replicas=copies))
    return TaskNeeds(
        inputs=tuple(inputs),
        priority=draw(st.integers(0, 1000)),
        prestaging=draw(st.booleans()),
        io_intensity=draw(st.sampled_from([None, 100.0, 300.0])),
        full_chain=draw(st.sampled_from(["", "only", "require", "capable"])),
        t1_weight=draw(st.sampled_from([None, -1, 4])),
    )


works = st.lists(
    st.tuples(st.sampled_from(NAMES), st.just(GROUP), st.integers(0, 1000), st.floats(0, 1e12)), max_size=5
).map(RemainingWork.of)


def choose(needs: TaskNeeds, grid: Grid, rw: RemainingWork, draw: float, **changes: Any) -> Decision:
    gathering = Gathering(OUTPUTS, group=GROUP)
    settings = replace(SETTINGS, **changes)
    return broker(needs, grid, gathering, settings, job_check=everywhere, draw=draw, work=rw)


@given(needs=tasks(), grid=grids(), rw=works, draw=st.floats(0, 1, exclude_max=True))
def test_every_nucleus_is_chosen_or_explained_and_weights_are_sound(
    needs: TaskNeeds, grid: Grid, rw: RemainingWork, draw: float
) -> None:
    decision = choose(needs, grid, rw, draw)
    verdict = decision.verdict
    assert decision.sentence().endswith(".")
    if verdict.stopped is not None:
        assert decision.drawn is None
        return
    asked = [n.name for n in grid.nuclei.values() if not n.is_satellite or (needs.full_chain and n.bare)]
    assert sorted(asked) == sorted([c.site for c in verdict.chosen] + [s.site for s in verdict.skipped])
    assert all(math.isfinite(c.weight) and c.weight >= 0 for c in verdict.chosen)
    weights = [c.weight for c in verdict.chosen]
    assert weights == sorted(weights, reverse=True)
    assert all(skip.detail for skip in verdict.skipped)
    assert (decision.drawn is None) is (not verdict.chosen)
    if decision.drawn is not None:
        assert decision.drawn.choice in verdict.chosen and 0 <= decision.drawn.chance <= 1
        assert len(decision.drawn.destinations) == len(OUTPUTS)


@given(needs=tasks(), grid=grids(), rw=works, draw=st.floats(0, 1, exclude_max=True), seed=st.integers())
def test_the_order_of_nuclei_and_of_copies_does_not_matter(
    needs: TaskNeeds, grid: Grid, rw: RemainingWork, draw: float, seed: int
) -> None:
    def shuffled(mapping: Any) -> dict[str, Any]:
        items = list(mapping.items())
        random.Random(seed).shuffle(items)
        return dict(items)

    other = replace(grid, nuclei=shuffled(grid.nuclei), endpoints=shuffled(grid.endpoints), sites=shuffled(grid.sites))
    inputs = tuple(replace(i, replicas=shuffled(i.replicas)) for i in needs.inputs)
    assert choose(needs, grid, rw, draw) == choose(replace(needs, inputs=inputs), other, rw, draw)


RELAXED: dict[str, Any] = {"disk_threshold_tb": 1.0, "queued_cap": 4000, "free_disk_cutoff_tb": 5000.0}


@given(needs=tasks(with_inputs=False), grid=grids(), rw=works, relaxed=st.sampled_from(sorted(RELAXED)))
def test_asking_less_of_nuclei_never_removes_one(needs: TaskNeeds, grid: Grid, rw: RemainingWork, relaxed: str) -> None:
    """Of tasks without inputs: the rule on inputs is switched off when nobody has them, and on again by a nucleus more."""
    before = {c.site for c in choose(needs, grid, rw, 0.0).verdict.chosen}
    after = {c.site for c in choose(needs, grid, rw, 0.0, **{relaxed: RELAXED[relaxed]}).verdict.chosen}
    assert before <= after


@given(
    grid=grids(), size=st.integers(2000, 10**7), here=st.integers(0, 10**7), low=st.floats(0, 50), high=st.floats(0, 50)
)
def test_asking_less_of_the_input_never_removes_a_nucleus_from_a_task_that_must_have_it(
    grid: Grid, size: int, here: int, low: float, high: float
) -> None:
    copies = {**{f"{name}_DATADISK": part(5, min(here, size)) for name in NAMES}, "REMOTE": Replica(10, size)}
    needs = TaskNeeds(io_intensity=900, inputs=(InputData("in", 10, size, True, replicas=copies),))
    grid = replace(grid, endpoints={**grid.endpoints, "REMOTE": Endpoint("REMOTE")})
    low, high = sorted((low, high))

    def chosen(percent: float) -> set[str]:
        decision = choose(needs, grid, NO_WORK, 0.0, input_size_fraction_percent=percent)
        return {c.site for c in decision.verdict.chosen}

    assert chosen(high) <= chosen(low)
