"""What each requirement of a task, and what each number of a queue and of its inputs, changes in the choice of queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from brokerage_app.advice.task_remedies import of_needs
from brokerage_app.brokers import analysis_job, generic, production_job
from brokerage_app.cases.analysis_settings import AnalysisFacts, Ended
from brokerage_app.cases.gathering import Gathering
from brokerage_app.grid.describing import nuclei_of
from brokerage_app.models import Site
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.userthrottle import Caps, Quota, ShareState, UserUsage
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView, Slots, UserJobs
from brokerage_app.vocabulary.snapshot import Grid, Nucleus
from brokerage_app.vocabulary.verdict import Verdict
from tests.brokerage_app import grids
from tests.brokerage_app.brokers.test_analysis_broker import (
    A100,
    DATA,
    FULL,
    GPU,
    GPUS,
    SHARE,
    busy,
    grid,
    needs,
    site,
)
from tests.brokerage_app.brokers.test_production_job import ALONE, NEEDS
from tests.brokerage_app.brokers.test_task_broker import GROUP, OUTPUTS, code, decide, part
from tests.brokerage_app.brokers.test_task_broker import data as nuclear_data
from tests.brokerage_app.grids import NUCLEUS, queue

Broker = Callable[[TaskNeeds, Grid], Verdict]


class Row(NamedTuple):
    """A requirement with a value, the rest of the requirements, queues, and what comes of it without it and with it."""

    field: str
    value: Any
    rest: TaskNeeds
    grid: Grid
    usual: str
    changed: str
    broker: Broker = analysis_job.broker


def outcome(verdict: Verdict) -> str:
    """The queues that are chosen, best first; of none why the task or each queue is not."""
    if verdict.chosen:
        return " ".join(choice.site for choice in verdict.chosen)
    return verdict.stopped.code if verdict.stopped else " ".join(sorted({skip.code for skip in verdict.skipped}))


def patient(asked: TaskNeeds, world: Grid) -> Verdict:
    return analysis_job.broker(asked, world, replace(analysis_job.DEFAULT_SETTINGS, check_timeout_h=2.0))


MANY = {SHARE: {"MCORE": Counts(running=100, activated=300)}}
TIME = {"cpu_hs06s": 500_000.0}
SCRATCH = {"atom_mb": 4000.0, "effective_mb": 4000.0}
A, PLAIN = grid(site()), needs()
TIMED = grid(site(core_power=10.0, max_walltime_s=60_000))
LIMITED = grid(site(core_power=10.0, max_walltime_s=60_000, min_walltime_s=600))
NEEDS_ROWS = [
    Row("cores", 8, PLAIN, A, "A", "too_few_cores"),
    Row("max_cores", 4, needs(cores=0), grid(site(cores=8)), "A", "too_many_cores"),
    Row("memory_mb", 3000, PLAIN, grid(site(max_memory_mb=2000)), "A", "low_memory"),
    Row(
        "memory_per_core",
        True,
        needs(memory_mb=2000, cores=8),
        grid(site(cores=8, max_memory_mb=4000)),
        "A",
        "low_memory",
    ),
    Row("base_memory_mb", 500, needs(memory_mb=2000), grid(site(max_memory_mb=2000)), "A", "low_memory"),
    Row("walltime_s", 3601, PLAIN, grid(site(max_walltime_s=3600)), "A", "short_walltime"),
    Row("walltime_s_per_mb", 10.0, needs(**SCRATCH), grid(site(max_walltime_s=3600)), "A", "short_walltime"),
    Row("walltime_known", False, PLAIN, grid(site(max_walltime_s=3600)), "A", "short_for_unknown"),
    Row("cpu_hs06s", 900_000.0, PLAIN, TIMED, "A", "short_walltime"),
    Row("cpu_efficiency_percent", 50, needs(**TIME), TIMED, "A", "short_walltime"),
    Row("base_walltime_s", 9000, needs(**TIME), TIMED, "A", "short_walltime"),
    Row("least_cpu_hs06s", 100_000.0, needs(cpu_hs06s=900_000.0), LIMITED, "short_walltime", "A"),
    Row("disk_mb", 3000, PLAIN, grid(site(work_dir_mb=2000)), "A", "scratch_disk", generic.broker),
    Row("label", "rc_test", PLAIN, grid(site(pilots_3h=0)), "no_pilots", "A"),
    Row("included_sites", ("B",), PLAIN, A, "A", "not_included"),
    Row("excluded_sites", ("A",), PLAIN, A, "A", "excluded"),
    Row("preassigned_site", "B", PLAIN, grid(site("A"), site("B")), "A B", "B"),
    Row("listed_sites", ("B",), PLAIN, grid(site("A"), site("B")), "A B", "B"),
    Row("resource_type", "MCORE", PLAIN, grid(site(jobs=FULL)), "queue_full_of_type", "A"),
    Row(
        "priority",
        2000,
        needs(inputs=(DATA,)),
        grid(site("A", jobs=FULL), site("B")),
        "no_data_there queue_full_of_type",
        "B",
    ),
    Row("cloud", "FR", PLAIN, grid(site(cloud="DE")), "A", "other_cloud"),
    Row("share", "Other", PLAIN, grid(site(jobs=FULL)), "queue_full_of_type", "A"),
    Row("processing_type", "simul", PLAIN, grid(site(policy="type=simul:0%")), "A", "zero_share"),
    Row("working_group", "higgs", PLAIN, grid(site(policy="group=higgs:0%")), "A", "zero_share"),
    Row("merging", True, needs(walltime_s=60), grid(site(max_walltime_s=86_399)), "A", "short_for_unknown"),
    Row("scouting", True, needs(walltime_s=60), grid(site(max_walltime_s=86_399)), "A", "short_for_scouts"),
    Row("atom_mb", 4000.0, PLAIN, grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("effective_mb", 4000.0, needs(out_disk=1000), grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row(
        "atom_events",
        9000,
        needs(out_disk=1000, out_disk_unit="kBPerEvent"),
        grid(site(work_dir_mb=3000)),
        "A",
        "scratch_disk",
    ),
    Row("job_size_mb", 4000, PLAIN, grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("out_disk", 1000, needs(effective_mb=4000.0), grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("out_disk_unit", "MB", needs(out_disk=4000), grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("work_disk", 4000, PLAIN, grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("work_disk_unit", "GB", needs(work_disk=4), grid(site(work_dir_mb=3000)), "A", "scratch_disk"),
    Row("architecture", GPU, PLAIN, grid(site(releases=("ANY",))), "A", "no_gpu"),
    Row("trans_home", "AnalysisTransforms-Athena_21.0.38", PLAIN, A, "A", "no_release"),
    Row("trans_uses", "Atlas-21.0.38", needs(trans_home="AnalysisTransforms"), A, "A", "no_release"),
    Row("container", "/cvmfs/lab/el9", PLAIN, A, "A", "no_container"),
    Row(
        "container_tags_only",
        True,
        needs(container="docker://el9"),
        grid(site(software={"containers": ["any"], "cvmfs": [], "tags": []})),
        "A",
        "no_container",
    ),
    Row("io_intensity", 101.0, PLAIN, grid(site(max_io_intensity=100.0)), "A", "io_intensity"),
    Row("disk_io_kbps", 101.0, PLAIN, grid(site(max_disk_io_kbps=100.0, disk_io_kbps=150.0)), "A", "disk_io_busy"),
    Row("direct_io", 2, PLAIN, A, "A", "no_direct_access"),
    Row(
        "local_io",
        True,
        needs(direct_io=1, **SCRATCH),
        grid(site(work_dir_mb=3000, direct_io=True)),
        "A",
        "scratch_disk",
    ),
    Row("direct_io_wan", True, needs(**SCRATCH), grid(site(work_dir_mb=3000, direct_io_wan=True)), "scratch_disk", "A"),
    Row("avoid_vp", True, PLAIN, grid(site(inputs=("X_VP_DISK",))), "A", "virtual_storage"),
    Row(
        "incomplete_input",
        True,
        needs(inputs=(InputData("d", 100, 1.0, replicas={"SE_A": Replica(50, 1.0, False)}),)),
        A,
        "input_incomplete",
        "A",
    ),
    Row(
        "frozen_s",
        7201.0,
        needs(inputs=(DATA,)),
        grid(site("A", jobs=FULL), site("B")),
        "no_data_there queue_full_of_type",
        "B",
        patient,
    ),
    Row("inputs", (DATA,), PLAIN, grid(site("A"), site("B")), "A B", "A"),
    Row("used_sites", ("B",), PLAIN, grid(busy("A", Counts(running=9)), busy("B", Counts(running=1))), "A B", "B A"),
    Row("avoided_sites", ("A",), PLAIN, grid(site("A"), site("B")), "A B", "B"),
    Row("user", "bob", PLAIN, grid(site(jobs=MANY, users={SHARE: {"ada": UserJobs(261, 1)}})), "user_queue_long", "A"),
]
PRODUCTION_ROWS = [
    Row("nucleus", NUCLEUS, ALONE, grids.grid(queue("Q"), to_nucleus=10_000), "Q", "links_full", production_job.broker),
    Row("t1_weight", -1, NEEDS, grids.grid(queue("Q")), "Q", "outside_nucleus", production_job.broker),
    Row(
        "full_chain",
        "only",
        NEEDS,
        grids.grid(queue("Q"), nucleus=Nucleus(NUCLEUS, bare="only")),
        "Q",
        "outside_full_chain",
        production_job.broker,
    ),
    Row(
        "network",
        "full",
        ALONE,
        grids.grid(queue("Q", connectivity="http#IPv4")),
        "Q",
        "no_connectivity",
        production_job.broker,
    ),
    Row(
        "ip_stack",
        "IPv6",
        replace(ALONE, network="http"),
        grids.grid(queue("Q", connectivity="http#IPv4")),
        "Q",
        "no_connectivity",
        production_job.broker,
    ),
    Row("jumbo", True, ALONE, grids.grid(queue("Q")), "Q", "no_jumbo_queue", production_job.broker),
    Row(
        "ready_events",
        50,
        replace(ALONE, jumbo=True),
        grids.grid(queue("Q", jumbo=True, min_events_for_jumbo=50)),
        "few_events",
        "Q",
        production_job.broker,
    ),
    Row("event_service", True, ALONE, grids.grid(queue("Q")), "Q", "no_event_service", production_job.broker),
    Row(
        "work_queue",
        "validation",
        ALONE,
        grids.grid(queue("Q", policy="type=any:0%")),
        "zero_share",
        "Q",
        production_job.broker,
    ),
    Row(
        "resource_queue",
        True,
        replace(ALONE, work_queue="ES"),
        grids.grid(queue("Q", resource_queue_jobs={"ES": {grids.TYPE: Counts(running=1, activated=300)}})),
        "Q",
        "queue_full",
        production_job.broker,
    ),
    Row(
        "merges_output",
        True,
        ALONE,
        grids.grid(queue("Q", last_start_s=3 * 3600, counts=Counts(running=9, activated=5))),
        "Q",
        "inactive",
        production_job.broker,
    ),
    Row("failing_builds", {"Q": 3}, ALONE, grids.grid(queue("Q"), queue("R")), "Q R", "R", production_job.broker),
]


@pytest.mark.parametrize("row", [*NEEDS_ROWS, *PRODUCTION_ROWS], ids=lambda row: row.field)
def test_a_requirement_changes_which_queues_are_chosen(row: Row) -> None:
    assert outcome(row.broker(row.rest, row.grid)) == row.usual
    assert outcome(row.broker(replace(row.rest, **{row.field: row.value}), row.grid)) == row.changed


DAY_S = 86_400.0
READS_MUCH: dict[str, Any] = {"io_intensity": 250.0, "priority": 500}


def nuclear(asked: TaskNeeds, on_master: bool = False) -> str:
    """Why the only nucleus is not taken."""
    return code(decide(asked, gathering=Gathering(OUTPUTS, group=GROUP, on_master=on_master))) or "ok"


def test_other_requirements_change_what_is_decided() -> None:
    far = TaskNeeds(inputs=(nuclear_data(100 * 1024, 10),), **READS_MUCH)
    assert nuclear(far) == "nucleus_input_size"
    assert nuclear(replace(far, prestaging=True, inputs=(nuclear_data(100 * 1024, 10, A=part(1, 1.0)),))) == "ok"
    assert nuclear(replace(far, nucleus="A")) == "ok"
    told = replace(analysis_job.DEFAULT_SETTINGS, base_weight="new")
    room = grid(busy("A", Counts(running=99)), busy("B"))

    def weight(jobs_wanted: int) -> float:
        return analysis_job.broker(needs(jobs_wanted=jobs_wanted), room, told).chosen[0].weight

    assert weight(10) != weight(30)
    much = needs(memory_mb=3000)
    small = grid(site(max_memory_mb=2000))
    (skip,) = analysis_job.broker(much, small).skipped
    assert "ramCount" in "".join(one.what for one in of_needs(much, skip, small))
    assert not list(of_needs(replace(much, memory_raised=True), skip, small))
    full = grids.grid(queue("Q"), queue("R", "S2"))
    assert outcome(production_job.broker(replace(NEEDS, outputs=("S_Q_DATADISK",)), full)) == "Q R"
    no_room = grid(site("A"), SE_C={"space_free_gb": 10.0})
    assert outcome(generic.broker(needs(outputs=("SE_C",)), no_room)) == "storage_full"
    assert outcome(generic.broker(needs(unplaced_outputs="SE_C"), no_room)) == "A"
    bare = grid(site("A", outputs=(), analysis_outputs=()), SE_C={"space_free_gb": 10.0})
    assert outcome(generic.broker(needs(unplaced_outputs="SE_C"), bare)) == "storage_full"
    assert outcome(generic.broker(needs(), no_room)) == "A"


OLD = InputData("d", 100, 1.0, is_primary=True, replicas={"SE_A": Replica(50, 1.0, False)})
COPY = {"SE_A": Replica(100, 1.0)}
INPUT_ROWS = [
    ("files", 55, "input_incomplete", "A"),
    ("distributed", True, "input_incomplete", "A"),
    ("replicas", COPY, "input_incomplete", "A"),
]


@pytest.mark.parametrize(("field", "value", "usual", "changed"), INPUT_ROWS)
def test_a_number_of_an_input_changes_which_queues_are_chosen(field: str, value: Any, usual: str, changed: str) -> None:
    for data, said in ((OLD, usual), (replace(OLD, **{field: value}), changed)):
        assert outcome(analysis_job.broker(needs(inputs=(data,)), A)) == said


def test_name_size_and_place_among_the_inputs_change_which_nucleus_is_chosen() -> None:
    far = nuclear_data(100 * 1024, 10)
    for field, value in (("name", "ddo.000001"), ("size_mb", 10.0), ("is_primary", False)):
        assert nuclear(TaskNeeds(inputs=(far,), **READS_MUCH), on_master=True) == "nucleus_input_size", field
        other = replace(far, **{field: value})
        assert nuclear(TaskNeeds(inputs=(other,), **READS_MUCH), on_master=True) == "ok", field


NEAR = part(1, 1024.0)
REPLICA_ROWS = [("size_mb", 20 * 1024.0, "nucleus_input_size", "ok"), ("complete", True, "nucleus_input_size", "ok")]


@pytest.mark.parametrize(("field", "value", "usual", "changed"), REPLICA_ROWS)
def test_a_number_of_a_replica_changes_which_nucleus_is_chosen(
    field: str, value: Any, usual: str, changed: str
) -> None:
    for replica, said in ((NEAR, usual), (replace(NEAR, **{field: value}), changed)):
        assert nuclear(TaskNeeds(inputs=(nuclear_data(100 * 1024, 10, A=replica),), **READS_MUCH)) == said


def test_files_of_a_replica_make_it_complete_and_tape_makes_it_slow() -> None:
    def chosen(*sites: SiteView, **replicas: Replica) -> str:
        data = replace(OLD, replicas=replicas)
        return outcome(analysis_job.broker(needs(inputs=(data,)), grid(*sites)))

    few, whole = Replica(50, 1.0, False), Replica(100, 1.0)
    assert chosen(site("A"), SE_A=few) == "input_incomplete"
    assert chosen(site("A"), SE_A=replace(few, files=95)) == "A"
    assert chosen(site("A"), site("B"), SE_A=whole, SE_B=whole) == "A B"
    assert chosen(site("A"), site("B"), SE_A=replace(whole, is_tape=True), SE_B=whole) == "B"


CLASSES = {"H": SiteClass.HI, "L": SiteClass.LO}
FACTS_ROWS = [
    ("usage", UserUsage(running_jobs=101), "H L", "user_running_jobs"),
    ("quotas", (Quota(11, 10),), "H L", "over_quota"),
    ("ended", {"H": Ended(0, 9)}, "H L", "L"),
]


@pytest.mark.parametrize(("field", "value", "usual", "changed"), FACTS_ROWS)
def test_a_fact_about_the_user_changes_which_queues_are_chosen(
    field: str, value: Any, usual: str, changed: str
) -> None:
    told = replace(analysis_job.DEFAULT_SETTINGS, user_caps=Caps(100), group_caps=Caps(200))
    world = grid(site("H"), site("L"))
    for facts, said in ((AnalysisFacts(), usual), (AnalysisFacts(**{field: value}), changed)):
        assert outcome(analysis_job.broker(needs(), world, told, facts)) == said


def test_group_share_and_classes_change_which_queues_are_chosen() -> None:
    told = replace(analysis_job.DEFAULT_SETTINGS, user_caps=Caps(100), group_caps=Caps(200), base_weight="new")
    world = grid(busy("H"), busy("L", Counts(running=30)))
    over = AnalysisFacts(usage=UserUsage(running_jobs=101), who="the user ada")
    assert "the user ada" in analysis_job.broker(needs(), world, told, over).sentence()
    assert analysis_job.broker(needs(), world, told, replace(over, is_group=True)).chosen
    spent = AnalysisFacts(share=ShareState(91.0), task_class=TaskClass.C)
    assert outcome(analysis_job.broker(needs(), world, told, spent)) == "class_c_waits"
    assert analysis_job.broker(needs(), world, told, replace(spent, share=ShareState())).chosen
    assert analysis_job.broker(needs(), world, told, replace(spent, task_class=TaskClass.A)).chosen
    of_classes = AnalysisFacts(task_class=TaskClass.A, site_classes=CLASSES)
    assert outcome(analysis_job.broker(needs(), world, told, of_classes)) == "H L"
    turned = replace(of_classes, site_classes={"H": SiteClass.LO, "L": SiteClass.HI})
    assert outcome(analysis_job.broker(needs(), world, told, turned)) == "L H"


def test_a_queue_says_where_outputs_of_whole_chains_of_its_nucleus_go() -> None:
    owner = Site(name="S", role="nucleus")
    view = SiteView("Q", site="S", outputs=("SE",), secondary_nucleus="S2")
    assert nuclei_of([owner], {"Q": view}, {})["S"].secondary == "S2"


class OfQueue(NamedTuple):
    """A number of a queue with a value, the other queues, and what comes of it without it and with it."""

    field: str
    value: Any
    asked: TaskNeeds
    queue: SiteView
    usual: str
    changed: str
    others: tuple[SiteView, ...] = ()
    broker: Broker = analysis_job.broker


COUNTS = {SHARE: {"SCORE": Counts(running=10, activated=41)}}
QUEUE_ROWS = [
    OfQueue("name", "C", PLAIN, site(), "A B", "B C", (site("B"),)),
    OfQueue("status", "offline", PLAIN, site(), "A", "site_offline"),
    OfQueue("cores", 8, PLAIN, site(), "A", "multi_core_only"),
    OfQueue("max_memory_mb", 1000, needs(memory_mb=2000), site(), "A", "low_memory"),
    OfQueue("min_memory_mb", 3000, needs(memory_mb=2000), site(), "A", "high_memory"),
    OfQueue("max_walltime_s", 3600, needs(walltime_s=7200), site(), "A", "short_walltime"),
    OfQueue("min_walltime_s", 7200, needs(walltime_s=3600), site(), "A", "long_walltime"),
    OfQueue("work_dir_mb", 1000, needs(**SCRATCH), site(), "A", "scratch_disk"),
    OfQueue(
        "core_power",
        20.0,
        needs(cpu_hs06s=900_000.0),
        site(core_power=10.0, max_walltime_s=60_000),
        "short_walltime",
        "A",
    ),
    OfQueue("direct_io", True, needs(direct_io=2), site(), "no_direct_access", "A"),
    OfQueue("direct_io_only", True, needs(**SCRATCH), site(work_dir_mb=3000), "scratch_disk", "A"),
    OfQueue("direct_io_wan", True, needs(direct_io_wan=True, **SCRATCH), site(work_dir_mb=3000), "scratch_disk", "A"),
    OfQueue("parent", "P", needs(excluded_sites=("P",)), site(), "A", "excluded"),
    OfQueue("is_parent", True, PLAIN, site(), "A B", "B", (site("B"),)),
    OfQueue("type", "production", PLAIN, site(), "A", "other_kind"),
    OfQueue("cloud", "FR", needs(cloud="DE"), site(cloud="DE"), "A", "other_cloud"),
    OfQueue("max_disk_io_kbps", 100.0, needs(disk_io_kbps=900.0), site(disk_io_kbps=150.0), "A", "disk_io_busy"),
    OfQueue("disk_io_kbps", 150.0, needs(disk_io_kbps=900.0), site(max_disk_io_kbps=100.0), "A", "disk_io_busy"),
    OfQueue("max_io_intensity", 100.0, needs(io_intensity=101.0), site(), "A", "io_intensity"),
    OfQueue("releases", ("ANY",), needs(trans_home="AnalysisTransforms-Athena_21.0.38"), site(), "no_release", "A"),
    OfQueue("software", GPUS, needs(architecture=GPU), site(releases=("AUTO",), gpus=A100), "no_gpu", "A"),
    OfQueue("gpus", A100, needs(architecture=GPU), site(releases=("AUTO",), software=GPUS), "no_gpu", "A"),
    OfQueue("policy", "type=simul:0%", needs(processing_type="simul"), site(), "A", "zero_share"),
    OfQueue("switches", {"gpu": ""}, PLAIN, site(), "A", "hardware_reserved"),
    OfQueue("inputs", ("SE_B",), needs(inputs=(DATA,)), site(), "A B", "B", (site("B", inputs=("SE_A",)),)),
    OfQueue("outputs", (), PLAIN, site(), "A", "no_output_storage"),
    OfQueue("analysis_inputs", ("SE_B",), needs(inputs=(DATA,)), site(), "A B", "B", (site("B", inputs=("SE_A",)),)),
    OfQueue("analysis_outputs", ("SE_A", "SE_C"), PLAIN, site(outputs=()), "no_output_storage", "A"),
    OfQueue("jobs", COUNTS, PLAIN, site(), "A", "queue_full_of_type"),
    OfQueue("users", {SHARE: {"ada": UserJobs(261, 1)}}, PLAIN, site(jobs=MANY), "A", "user_queue_long"),
    OfQueue(
        "started_per_h", 50.0, PLAIN, site(jobs=MANY, users={SHARE: {"ada": UserJobs(261, 1)}}), "user_queue_long", "A"
    ),
    OfQueue("slots", (Slots(None, None, 5),), PLAIN, site(pilots_3h=0), "no_pilots", "A"),
    OfQueue("pilots_3h", 0, PLAIN, site(), "A", "no_pilots"),
    OfQueue("batch_jobs", 30, PLAIN, busy("A", Counts()), "B A", "A B", (busy("B", Counts(running=9)),)),
    OfQueue(
        "only_local_data",
        True,
        needs(inputs=(DATA,)),
        site("A", inputs=("SE_C",)),
        "A",
        "files_not_there site_offline",
        (site("B", status="offline", inputs=("SE_A",)),),
    ),
]
PQ = queue("Q")
PRODUCTION_QUEUE_ROWS = [
    OfQueue(*row, (), production_job.broker)
    for row in (
        ("site", NUCLEUS, replace(NEEDS, t1_weight=-1), PQ, "outside_nucleus", "Q"),
        ("capability", "ucore", replace(ALONE, cores=1), PQ, "multi_core_only", "Q"),
        ("pledged_cores", -1, replace(ALONE, priority=800), PQ, "Q", "opportunistic"),
        (
            "transferring_limit",
            3000,
            NEEDS,
            queue("Q", counts=Counts(running=1000, transferring=2500)),
            "too_many_transferring",
            "Q",
        ),
        (
            "connectivity",
            "none#IPv4",
            replace(ALONE, network="http"),
            queue("Q", connectivity="http#IPv4"),
            "Q",
            "no_connectivity",
        ),
        ("job_seed", "es", ALONE, PQ, "Q", "event_service_only"),
        ("bare_nucleus", "only", NEEDS, PQ, "Q", "full_chain_only"),
        ("jumbo", True, ALONE, PQ, "Q", "jumbo_queue"),
        ("min_events_for_jumbo", 5, replace(ALONE, jumbo=True), queue("Q", jumbo=True), "Q", "few_events"),
        (
            "last_start_s",
            3 * 3600.0,
            replace(ALONE, priority=850),
            queue("Q", counts=Counts(running=9, activated=5)),
            "Q",
            "inactive",
        ),
        (
            "resource_queue_jobs",
            {"ES": {grids.TYPE: Counts(running=1, activated=300)}},
            replace(ALONE, work_queue="ES", resource_queue=True),
            PQ,
            "Q",
            "queue_full",
        ),
    )
]
GENERIC_QUEUE_ROWS = [
    OfQueue(*row, broker=generic.broker)
    for row in (
        ("space_gb", 150.0, PLAIN, site(), "A", "storage_full"),
        ("running", 50, PLAIN, site(), "B A", "A B", (site("B", running=10, queued=9),)),
        ("queued", 500, PLAIN, site(), "A", "queue_full"),
        ("defined", 500, PLAIN, site(), "A", "queue_full"),
        ("silent_s", 9999.0, PLAIN, site(), "A B", "B", (site("B"),)),
        ("quiet_s", 99_999.0, PLAIN, site(), "A B", "B", (site("B"),)),
    )
]


@pytest.mark.parametrize("row", [*QUEUE_ROWS, *PRODUCTION_QUEUE_ROWS, *GENERIC_QUEUE_ROWS], ids=lambda row: row.field)
def test_a_number_of_a_queue_changes_which_queues_are_chosen(row: OfQueue) -> None:
    def chosen(one: SiteView) -> str:
        world = grid(one, *row.others) if row.broker is not production_job.broker else grids.grid(one)
        return outcome(row.broker(row.asked, world))

    assert chosen(row.queue) == row.usual
    assert chosen(replace(row.queue, **{row.field: row.value})) == row.changed
