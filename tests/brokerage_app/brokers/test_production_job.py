"""The broker of production jobs: the worked examples of the reference, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from brokerage_app.brokers.production_job import ProductionSettings, broker
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView
from brokerage_app.vocabulary.snapshot import Link, Nucleus
from brokerage_app.vocabulary.verdict import Verdict
from tests.brokerage_app.grids import NUCLEUS, SHARE, TYPE, dataset, disk, grid, queue

NEEDS = TaskNeeds(
    cores=8, share=SHARE, resource_type=TYPE, priority=500, nucleus=NUCLEUS, cpu_hs06s=1000, label="managed", vo="atlas"
)
SINGLE = replace(NEEDS, cores=1)
ALONE = replace(NEEDS, nucleus="")


def code_of(verdict: Verdict, name: str = "Q") -> str:
    """The code with which a queue was left out, `ok` when it was chosen."""
    if any(choice.site == name for choice in verdict.chosen):
        return "ok"
    return next(skip.code for skip in verdict.skipped if skip.site == name)


def asked(needs: TaskNeeds, site: SiteView, settings: ProductionSettings | None = None, **world: Any) -> str:
    """What comes of one satellite queue."""
    return code_of(broker(needs, grid(site, **world), settings), site.name)


HEAVY_INPUT = replace(SINGLE, nucleus="", cores=1, atom_mb=8192, effective_mb=8192, out_disk=500, work_disk=200)


@pytest.mark.parametrize(
    "name, needs, site, expected",
    [
        (
            "M1",
            replace(NEEDS, memory_mb=2000, memory_per_core=True, base_memory_mb=1000),
            queue("Q", max_memory_mb=16_000),
            "ok",
        ),
        (
            "M2",
            replace(NEEDS, memory_mb=2000, memory_per_core=True, base_memory_mb=1000),
            queue("Q", max_memory_mb=12_000),
            "low_memory",
        ),
        (
            "M3",
            replace(NEEDS, memory_mb=2000, memory_per_core=True, base_memory_mb=1000),
            queue("Q", max_memory_mb=32_000, min_memory_mb=16_001),
            "high_memory",
        ),
        ("F2", HEAVY_INPUT, queue("Q", capability="ucore", work_dir_mb=100_000), "ok"),
        ("F2, one MB less a core", HEAVY_INPUT, queue("Q", capability="ucore", work_dir_mb=99_935), "scratch_disk"),
        (
            "F1 read directly",
            replace(HEAVY_INPUT, direct_io=1),
            queue("Q", cores=1, work_dir_mb=4300, direct_io=True),
            "ok",
        ),
        (
            "F1 read directly, less",
            replace(HEAVY_INPUT, direct_io=1),
            queue("Q", cores=1, work_dir_mb=4299, direct_io=True),
            "scratch_disk",
        ),
        (
            "F1 read directly, never",
            replace(HEAVY_INPUT, direct_io=1, local_io=True),
            queue("Q", cores=1, work_dir_mb=12_491, direct_io=True),
            "scratch_disk",
        ),
        (
            "F1 read directly from afar",
            replace(HEAVY_INPUT, direct_io_wan=True),
            queue("Q", cores=1, work_dir_mb=4300, direct_io_wan=True),
            "ok",
        ),
        (
            "F1 read directly from afar, never",
            replace(HEAVY_INPUT, direct_io_wan=True, local_io=True),
            queue("Q", cores=1, work_dir_mb=4300, direct_io_wan=True),
            "scratch_disk",
        ),
        (
            "F1 at queues that only read directly",
            HEAVY_INPUT,
            queue("Q", cores=1, work_dir_mb=4300, direct_io_only=True),
            "ok",
        ),
        (
            "a multi-core job has the whole slot's disk",
            replace(HEAVY_INPUT, cores=8),
            queue("Q", work_dir_mb=12_492),
            "ok",
        ),
        ("direct reading only", replace(ALONE, direct_io=2), queue("Q"), "no_direct_access"),
        ("direct reading only, always there", replace(ALONE, direct_io=2), queue("Q", direct_io_only=True), "ok"),
    ],
)
def test_memory_and_scratch_disk_of_the_worked_examples(
    name: str, needs: TaskNeeds, site: SiteView, expected: str
) -> None:
    assert asked(needs, site) == expected


F4 = replace(ALONE, cpu_hs06s=5_000_000, cpu_efficiency_percent=90, base_walltime_s=600)
SCOUTS = replace(ALONE, scouting=True)


@pytest.mark.parametrize(
    "name, needs, more, expected",
    [
        ("F5", F4, {"max_walltime_s": 86_400}, "ok"),
        ("F6", F4, {"max_walltime_s": 70_000}, "short_walltime"),
        ("F7", F4, {"min_walltime_s": 72_000}, "long_walltime"),
        ("F7, just", F4, {"min_walltime_s": 70_044}, "ok"),
        ("F8", replace(F4, cpu_efficiency_percent=0), {"max_walltime_s": 600}, "ok"),
        ("F9 below a day", SCOUTS, {"max_walltime_s": 86_399}, "short_for_scouts"),
        ("F9 a day", SCOUTS, {"max_walltime_s": 86_400}, "ok"),
        ("F9 bound to the queue", replace(SCOUTS, preassigned_site="Q"), {"max_walltime_s": 86_399}, "ok"),
        ("nothing known", replace(ALONE, walltime_known=False), {"max_walltime_s": 86_399}, "short_for_unknown"),
        (
            "nothing known, bound",
            replace(ALONE, walltime_known=False, preassigned_site="Q"),
            {"max_walltime_s": 86_399},
            "short_for_unknown",
        ),
        ("nothing known, least time", replace(ALONE, walltime_known=False), {"min_walltime_s": 1}, "long_walltime"),
        ("merging", replace(ALONE, merging=True), {"max_walltime_s": 86_399}, "short_for_unknown"),
    ],
)
def test_walltime_of_the_worked_examples(name: str, needs: TaskNeeds, more: dict[str, Any], expected: str) -> None:
    assert asked(needs, queue("Q", **more)) == expected


def transferring(jobs: int, running: int, **more: Any) -> SiteView:
    return queue("Q", counts=Counts(running=running, transferring=jobs), **more)


@pytest.mark.parametrize(
    "name, needs, site, world, expected",
    [
        ("F10", NEEDS, transferring(2500, 1000), {}, "too_many_transferring"),
        ("F11", NEEDS, transferring(2500, 1300), {}, "ok"),
        (
            "F12",
            NEEDS,
            transferring(2500, 1000, transferring_to={"N2": 600, NUCLEUS: 100}),
            {"nuclei": (NUCLEUS, "N2"), "N2": {"write_wan": "OFF"}},
            "ok",
        ),
        (
            "F12 without a downtime",
            NEEDS,
            transferring(2500, 1000, transferring_to={"N2": 600}),
            {"nuclei": (NUCLEUS, "N2")},
            "too_many_transferring",
        ),
        ("own limit", NEEDS, transferring(2500, 1000, transferring_limit=2500), {}, "ok"),
        ("at the nucleus", NEEDS, replace(transferring(2500, 1000), site=NUCLEUS), {}, "ok"),
        ("F13 149", NEEDS, queue("Q", "S"), {"links": {"S": Link(queued={"Production Output": 149})}}, "ok"),
        (
            "F13 150",
            NEEDS,
            queue("Q", "S"),
            {"links": {"S": Link(queued={"Production Output": 150})}},
            "link_full",
        ),
        ("F13 another activity", NEEDS, queue("Q", "S"), {"links": {"S": Link(queued={"Express": 150})}}, "ok"),
        ("F14 9999", NEEDS, queue("Q"), {"to_nucleus": 9_999}, "ok"),
        ("F14 10000", NEEDS, queue("Q"), {"to_nucleus": 10_000}, "links_full"),
        ("F14 own queue", NEEDS, queue("Q", NUCLEUS), {"to_nucleus": 10_000}, "ok"),
        ("F15", NEEDS, queue("Q", "S"), {"links": {"S": Link(closeness=-1)}}, "link_blocked"),
        ("nucleus down", NEEDS, queue("Q"), {NUCLEUS: {"write_wan": "OFF"}}, "nucleus_not_writable"),
        ("nucleus down, its own", NEEDS, queue("Q", NUCLEUS), {NUCLEUS: {"write_wan": "TEST"}}, "ok"),
        ("no nucleus", ALONE, queue("Q", "S"), {"to_nucleus": 10_000, "links": {"S": Link(closeness=-1)}}, "ok"),
    ],
)
def test_transfers_and_links_of_the_worked_examples(
    name: str, needs: TaskNeeds, site: SiteView, world: dict[str, Any], expected: str
) -> None:
    assert asked(needs, site, **world) == expected


def reading(intensity: float, data: Any, **more: Any) -> TaskNeeds:
    return replace(ALONE, io_intensity=intensity, inputs=(data,), **more)


HERE = queue("Q", "S")
THERE = queue("R", "T")


@pytest.mark.parametrize(
    "name, needs, sites, expected",
    [
        ("F16", reading(250, dataset(100, 100, S=(89, 80), T=None)), (HERE, THERE), "too_much_input_missing"),
        ("F17", reading(250, dataset(100, 1000, S=(95, 899), T=None)), (HERE, THERE), "too_much_input_missing"),
        ("just little enough", reading(250, dataset(100, 1000, S=(90, 900), T=None)), (HERE, THERE), "ok"),
        ("F18", reading(200, dataset(500, 1000, T=None)), (HERE, THERE), "ok"),
        (
            "F19",
            reading(250, dataset(50, 60, S__TAPE=(48, 60), T=None)),
            (queue("Q", "S", inputs=(disk("S"), "S_DATATAPE")), THERE),
            "too_much_input_missing",
        ),
        (
            "F19, nobody on disk",
            reading(250, dataset(50, 60, S__TAPE=(48, 60), T__TAPE=None)),
            (queue("Q", "S", inputs=(disk("S"), "S_DATATAPE")), queue("R", "U")),
            "ok",
        ),
        ("nobody has enough", reading(250, dataset(500, 1000, X=None)), (HERE, THERE), "ok"),
        ("bound to it", reading(250, dataset(500, 1000, T=None), preassigned_site="Q"), (HERE, THERE), "ok"),
        ("merging", reading(250, dataset(500, 1000, T=None), merging=True), (HERE, THERE), "ok"),
        (
            "F16 read from afar",
            reading(250, dataset(100, 100, S=(89, 80), T=None), direct_io_wan=True),
            (replace(HERE, direct_io_wan=True), THERE),
            "ok",
        ),
    ],
)
def test_missing_input_of_the_worked_examples(
    name: str, needs: TaskNeeds, sites: Sequence[SiteView], expected: str
) -> None:
    assert code_of(broker(needs, grid(*sites)), "Q") == expected


@pytest.mark.parametrize(
    "name, needs, more, expected",
    [
        ("F20", replace(ALONE, priority=800), {"pledged_cores": -1}, "opportunistic"),
        ("F20 less urgent", replace(ALONE, priority=799), {"pledged_cores": -1}, "ok"),
        ("F20 scouts", SCOUTS, {"pledged_cores": -1}, "opportunistic"),
        ("F20 bound", replace(ALONE, priority=800, preassigned_site="Q"), {"pledged_cores": -1}, "ok"),
        ("F20 one of several", replace(ALONE, priority=800, listed_sites=("Q", "R")), {"pledged_cores": -1}, "ok"),
        (
            "F21",
            replace(ALONE, priority=850),
            {"last_start_s": 3 * 3600, "counts": Counts(running=9, activated=5)},
            "inactive",
        ),
        (
            "F21 starting",
            replace(ALONE, merging=True),
            {"last_start_s": 3 * 3600, "counts": Counts(running=9, starting=1)},
            "inactive",
        ),
        (
            "F21 nothing waits",
            replace(ALONE, priority=850),
            {"last_start_s": 3 * 3600, "counts": Counts(running=9)},
            "ok",
        ),
        (
            "F21 two hours",
            replace(ALONE, priority=850),
            {"last_start_s": 2 * 3600, "counts": Counts(running=9, activated=5)},
            "ok",
        ),
        (
            "F21 not urgent",
            replace(ALONE, priority=799),
            {"last_start_s": 3 * 3600, "counts": Counts(running=9, activated=5)},
            "ok",
        ),
        (
            "F21 to be merged",
            replace(ALONE, merges_output=True),
            {"last_start_s": 3 * 3600, "counts": Counts(running=9, activated=5)},
            "inactive",
        ),
        ("F22", replace(ALONE, disk_io_kbps=9000), {"disk_io_kbps": 900.0, "max_disk_io_kbps": 800.0}, "disk_io_busy"),
        ("F22 task below", replace(ALONE, disk_io_kbps=6000), {"disk_io_kbps": 900.0, "max_disk_io_kbps": 800.0}, "ok"),
        (
            "F22 queue below",
            replace(ALONE, disk_io_kbps=9000),
            {"disk_io_kbps": 800.0, "max_disk_io_kbps": 800.0},
            "ok",
        ),
        (
            "F22 whole numbers",
            replace(ALONE, disk_io_kbps=6407),
            {"disk_io_kbps": 900.0, "max_disk_io_kbps": 800.0},
            "ok",
        ),
        ("F22 no limit", replace(ALONE, disk_io_kbps=9e6), {"disk_io_kbps": 9e6}, "ok"),
        ("F23 http", replace(ALONE, network="http"), {"connectivity": "http#IPv4"}, "ok"),
        ("F23 full", replace(ALONE, network="full"), {"connectivity": "http#IPv4"}, "no_connectivity"),
        ("F23 IPv6", replace(ALONE, network="http", ip_stack="IPv6"), {"connectivity": "http#IPv4"}, "no_connectivity"),
        ("F23 bound", replace(ALONE, network="full", preassigned_site="Q"), {"connectivity": "http#IPv4"}, "ok"),
        ("offline", ALONE, {"status": "offline"}, "site_offline"),
        ("brokeroff", ALONE, {"status": "brokeroff"}, "site_brokeroff"),
        ("standby", ALONE, {"status": "standby"}, "ok"),
        *(
            (f"{status} and {how}", replace(ALONE, **bound), {"status": status}, says)
            for status, says in (
                ("offline", "site_offline"),
                ("paused", "site_paused"),
                ("test", "site_test_only"),
                ("brokeroff", "ok"),
                ("standby", "ok"),
            )
            for how, bound in (("bound", {"preassigned_site": "Q"}), ("listed", {"listed_sites": ("Q", "R")}))
        ),
        ("test and bound, test work", replace(ALONE, preassigned_site="Q", label="test"), {"status": "test"}, "ok"),
        ("cores", ALONE, {"cores": 1}, "too_few_cores"),
        ("cores, bound", replace(ALONE, preassigned_site="Q"), {"cores": 1}, "ok"),
        ("cores, listed", replace(ALONE, listed_sites=("Q", "R")), {"cores": 1}, "too_few_cores"),
        ("one core", replace(ALONE, cores=1), {"cores": 8}, "multi_core_only"),
        ("one core, not stated", replace(ALONE, cores=None), {"cores": 1}, "ok"),
        ("any number", replace(ALONE, cores=0), {"cores": 1}, "ok"),
        ("any number, urgent", replace(ALONE, cores=0, priority=900), {"cores": 1}, "too_few_cores"),
        ("any number, scouts", replace(SCOUTS, cores=0), {"cores": 1}, "too_few_cores"),
        ("too many cores", replace(ALONE, max_cores=7), {}, "too_many_cores"),
        ("as many as wanted", replace(ALONE, max_cores=8), {}, "ok"),
        ("zero share", replace(ALONE, processing_type="reco"), {"policy": "type=evgen:100%,type=any:0%"}, "zero_share"),
        ("a share", replace(ALONE, processing_type="evgen"), {"policy": "type=evgen:100%,type=any:0%"}, "ok"),
        ("zero share of a test queue", replace(ALONE, work_queue="validation"), {"policy": "type=any:0%"}, "ok"),
        ("jumbo queue", ALONE, {"jumbo": True}, "jumbo_queue"),
        ("jumbo job", replace(ALONE, jumbo=True), {}, "no_jumbo_queue"),
        ("few events", replace(ALONE, jumbo=True), {"jumbo": True, "min_events_for_jumbo": 10}, "few_events"),
        ("enough", replace(ALONE, jumbo=True, ready_events=9), {"jumbo": True, "min_events_for_jumbo": 9}, "ok"),
        ("no event service", replace(ALONE, event_service=True), {}, "no_event_service"),
        ("event service", replace(ALONE, event_service=True), {"job_seed": "all"}, "ok"),
        (
            "event service, urgent only",
            replace(ALONE, event_service=True, priority=899),
            {"job_seed": "eshigh"},
            "event_service_high_only",
        ),
        ("event service, urgent", replace(ALONE, event_service=True, priority=900), {"job_seed": "eshigh"}, "ok"),
        ("only event service", ALONE, {"job_seed": "es"}, "event_service_only"),
        (
            "event service in one core",
            replace(ALONE, cores=1, event_service=True),
            {"job_seed": "all", "cores": 1, "parent": "P"},
            "event_service_needs_cores",
        ),
        ("too intense", replace(ALONE, io_intensity=501), {"max_io_intensity": 500.0}, "io_intensity"),
        ("just not", replace(ALONE, io_intensity=500), {"max_io_intensity": 500.0}, "ok"),
        ("no pilots", ALONE, {"pilots_3h": 0}, "no_pilots"),
        ("pilots not counted", ALONE, {"pilots_3h": None}, "ok"),
        ("no pilots, label of tests", replace(ALONE, label="ptest"), {"pilots_3h": 0}, "ok"),
        ("no pilots, urgent test", replace(ALONE, label="ptest", priority=1000), {"pilots_3h": 0}, "no_pilots"),
        ("kept for chains", NEEDS, {"bare_nucleus": "only"}, "full_chain_only"),
    ],
)
def test_one_queue_of_the_worked_examples(name: str, needs: TaskNeeds, more: dict[str, Any], expected: str) -> None:
    assert asked(needs, queue("Q", **more)) == expected


SHORTAGE = ProductionSettings(work_shortage=True)


@pytest.mark.parametrize(
    "name, needs, cores, pledge, expected",
    [
        ("F24", ALONE, 990, 1000, "ok"),
        ("at the pledge", ALONE, 1000, 1000, "ok"),
        ("over it", ALONE, 1001, 1000, "over_pledged"),
        ("no pledge", ALONE, 1, -1, "non_pledged"),
        ("not stated", ALONE, 5000, 0, "ok"),
        ("bound", replace(ALONE, preassigned_site="Q"), 1001, 1000, "ok"),
    ],
)
def test_the_pledge_counts_while_work_is_short(
    name: str, needs: TaskNeeds, cores: int, pledge: int, expected: str
) -> None:
    site = queue("Q", counts=Counts(running=100, starting=20, running_cores=cores), pledged_cores=pledge)
    assert asked(needs, site, SHORTAGE) == expected
    assert asked(needs, site) == "ok"


LOCAL = dataset(10, 100, S=None)


@pytest.mark.parametrize(
    "name, needs, states, expected",
    [
        ("all is well", NEEDS, {}, "ok"),
        ("read_lan", NEEDS, {"read_lan": "OFF"}, "input_not_readable"),
        ("write_lan", NEEDS, {"write_lan": "TEST"}, "output_not_writable"),
        ("write_wan", NEEDS, {"write_wan": "OFF"}, "storage_not_receiving"),
        ("read_wan", NEEDS, {"read_wan": "OFF"}, "storage_not_sending"),
        ("delete is not asked", NEEDS, {"delete": "OFF"}, "ok"),
    ],
)
def test_activities_of_a_satellite_s_storage(
    name: str, needs: TaskNeeds, states: dict[str, str], expected: str
) -> None:
    assert asked(needs, queue("Q", "S"), S=states) == expected


def test_a_nucleus_needs_to_receive_only_what_it_lacks() -> None:
    own = queue("Q", NUCLEUS)
    down = {NUCLEUS: {"write_wan": "OFF", "read_wan": "OFF"}}
    assert asked(NEEDS, own, **down) == "ok"
    assert asked(replace(NEEDS, inputs=(dataset(10, 100, X=None),)), own, **down) == "storage_not_receiving"
    assert asked(replace(NEEDS, inputs=(dataset(10, 100, N1=None),)), own, N1={"write_wan": "OFF"}) == "ok"


def test_satellites_need_a_source_that_sends() -> None:
    needs = replace(NEEDS, inputs=(dataset(10, 100, X=None),))
    assert asked(needs, queue("Q", "S"), X={"read_wan": "OFF"}) == "source_not_sending"
    assert asked(needs, queue("Q", "S")) == "ok"


def test_a_full_storage_is_waited_for() -> None:
    site = queue("Q", "S")
    for free, expected in ((199.9, "storage_full"), (200.0, "ok"), (None, "ok")):
        world = grid(site)
        endpoints = {**world.endpoints, disk("S"): replace(world.endpoints[disk("S")], space_free_gb=free)}
        assert code_of(broker(NEEDS, replace(world, endpoints=endpoints))) == expected


@pytest.mark.parametrize(
    "name, data, states, merging, code",
    [
        ("nowhere complete", dataset(10, 1000, S=(5, 500), T=(8, 800)), {}, False, codes.INPUT_INCOMPLETE),
        ("a tenth may lack", dataset(10, 1000, T=(9, 900)), {}, False, ""),
        ("ten files may lack", dataset(10, 50, T=(8, 40)), {}, False, ""),
        ("eleven may not", dataset(10, 50, T=(8, 39)), {}, False, codes.INPUT_INCOMPLETE),
        ("down", dataset(10, 1000, T=None), {"read_lan": "OFF", "read_wan": "OFF"}, False, codes.INPUT_IN_DOWNTIME),
        ("read from outside only", dataset(10, 1000, T=None), {"read_lan": "OFF"}, False, ""),
        ("merging asks nothing", dataset(10, 1000, T=None), {"read_lan": "OFF", "read_wan": "OFF"}, True, ""),
        ("on tape", dataset(10, 1000, T__TAPE=None), {}, False, ""),
        ("spread by intention", replace(dataset(10, 1000, S=(5, 500), T=(5, 500)), distributed=True), {}, False, ""),
    ],
)
def test_input_that_nobody_can_read_stops_the_decision(
    name: str, data: Any, states: dict[str, str], merging: bool, code: str
) -> None:
    needs = replace(ALONE, inputs=(data,), merging=merging)
    verdict = broker(needs, grid(HERE, THERE, T=states))
    assert (verdict.stopped.code if verdict.stopped else "") == code
    if code:
        assert not verdict.chosen and "in" in verdict.sentence()
        for may in ("prestaging", "incomplete_input"):
            assert broker(replace(needs, **{may: True}), grid(HERE, THERE, T=states)).stopped is None


def test_t1_weight_below_zero_keeps_the_busiest_queue_of_the_nucleus() -> None:
    sites = [
        queue("A", NUCLEUS, counts=Counts(running=50)),
        replace(queue("B", NUCLEUS, counts=Counts(running=70)), jobs={"other": {TYPE: Counts(running=70)}}),
        queue("C", "S", outputs=(disk(NUCLEUS),), counts=Counts(running=60)),
        queue("D", "S"),
    ]
    verdict = broker(replace(NEEDS, t1_weight=-1), grid(*sites))
    assert [choice.site for choice in verdict.chosen] == ["B"]
    assert {skip.site: skip.code for skip in verdict.skipped} == {
        "A": "not_busiest_of_nucleus",
        "C": "not_busiest_of_nucleus",
        "D": "outside_nucleus",
    }
    assert {c.site for c in broker(replace(NEEDS, t1_weight=-1, merging=True), grid(*sites)).chosen} == set("ABCD")


@pytest.mark.parametrize(
    "name, chain, bare, expected",
    [
        ("a chain at a bare nucleus", "only", "only", {"A": "ok", "D": "outside_full_chain"}),
        ("where both are allowed", "require", "allow", {"A": "ok", "D": "outside_full_chain"}),
        ("no chain, satellites are used", "", "allow", {"A": "ok", "D": "ok"}),
        ("a chain without a bare nucleus", "capable", "", {"A": "ok", "D": "ok"}),
    ],
)
def test_whole_chains_stay_at_their_nucleus(name: str, chain: str, bare: str, expected: dict[str, str]) -> None:
    world = grid(queue("A", NUCLEUS), queue("D", "S"), nucleus=Nucleus(NUCLEUS, bare=bare))
    verdict = broker(replace(NEEDS, full_chain=chain), world)
    assert {name: code_of(verdict, name) for name in expected} == expected


def test_names_with_test_other_kinds_and_other_clouds_are_no_candidates() -> None:
    world = grid(
        queue("A", cloud="DE"),
        queue("B_TEST", cloud="DE"),
        queue("C", type="analysis", cloud="DE"),
        queue("D", cloud="US"),
        queue("E", cloud="DE", type="analysis", switches={"grandly_unified": ""}),
    )
    verdict = broker(replace(ALONE, cloud="DE"), world)
    assert {choice.site for choice in verdict.chosen} == {"A", "E"}
    assert {skip.site: skip.code for skip in verdict.skipped} == {
        "B_TEST": codes.TEST_QUEUE,
        "C": codes.OTHER_KIND,
        "D": codes.OTHER_CLOUD,
    }
    anywhere = {"A", "D", "E"}
    assert {choice.site for choice in broker(replace(ALONE, cloud="WORLD"), world).chosen} == anywhere
    assert {choice.site for choice in broker(replace(ALONE, cloud="MOON"), world).chosen} == anywhere
    assert [choice.site for choice in broker(replace(ALONE, preassigned_site="B_TEST"), world).chosen] == ["B_TEST"]


def test_a_divided_queue_stands_for_its_pseudo_queues() -> None:
    one = replace(SINGLE, nucleus="", memory_mb=3000)
    parts = [
        queue("P", is_parent=True, capability="ucore"),
        queue("P/SCORE", cores=1, parent="P", max_memory_mb=2000, capability="ucore"),
        queue("P/SCORE_HIMEM", cores=1, parent="P", min_memory_mb=2001, max_memory_mb=4000, capability="ucore"),
        queue("P/MCORE", cores=8, parent="P", max_memory_mb=16_000, capability="ucore"),
    ]
    world = grid(*parts, queue("R", cores=1))
    assert {c.site for c in broker(one, world).chosen} == {"P/SCORE_HIMEM", "R"}
    bound = broker(replace(one, preassigned_site="P"), world)
    assert {c.site for c in bound.chosen} == {"P/SCORE_HIMEM"}
    assert {skip.site: skip.code for skip in bound.skipped} == {
        "P/SCORE": codes.LOW_MEMORY,
        "P/MCORE": codes.MULTI_CORE_ONLY,
        "R": codes.NOT_PREASSIGNED,
    }


def test_merge_work_goes_where_its_files_are_until_it_has_waited_too_long() -> None:
    world = grid(queue("Q", "S"), queue("R", "T", inputs=(disk("T"), disk("S"))), queue("U", "U"))
    needs = replace(ALONE, merging=True, preassigned_site="Q")
    assert {c.site for c in broker(needs, world).chosen} == {"Q", "R"}
    waited = replace(needs, unchanged_s=24 * 3600 + 1, frozen_s=6 * 3600 + 1)
    assert {c.site for c in broker(waited, world).chosen} == {"Q", "R", "U"}
    for more in ({"unchanged_s": 24 * 3600}, {"frozen_s": 6 * 3600}, {"unchanged_s": None}):
        assert {c.site for c in broker(replace(waited, **more), world).chosen} == {"Q", "R"}
