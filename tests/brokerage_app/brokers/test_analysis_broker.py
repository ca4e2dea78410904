import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.brokers.analysis_job import DEFAULT_SETTINGS, broker
from brokerage_app.cases.analysis_settings import NO_FACTS, AnalysisFacts, AnalysisSettings, Ended
from brokerage_app.formulas.unified import parts_of
from brokerage_app.policy.classes import SiteClass, TaskClass
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.policy.userthrottle import Caps, Quota, ShareState, UserUsage
from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.resource_types import DEFAULT_TABLE
from brokerage_app.vocabulary.site_view import Counts, SiteView, Slots, UserJobs
from brokerage_app.vocabulary.snapshot import Endpoint, Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict
from jedisite import refusals

SHARE = "User Analysis"
ALL = Replica(10, 10_240.0)
DATA = InputData("data", 10, 10_240.0, True, replicas={"SE_A": ALL})


def site(name: str = "A", **more: Any) -> SiteView:
    """A single-core queue that reads from and writes to SE_{name}."""
    return SiteView(name, **{"cores": 1, "site": name, "inputs": (f"SE_{name}",), "outputs": (f"SE_{name}",), **more})


def busy(name: str = "A", counts: Counts | None = None, **more: Any) -> SiteView:
    return site(name, jobs={SHARE: {"SCORE": counts or Counts(running=10)}}, **more)


def grid(*sites: SiteView, **endpoints: dict[str, Any]) -> Grid:
    names = {name for one in sites for name in (*one.inputs, *one.outputs)} | set(endpoints)
    made = {name: Endpoint(name, **{"space_free_gb": 5000.0, **endpoints.get(name, {})}) for name in sorted(names)}
    return Grid(sites={one.name: one for one in sites}, endpoints=made)


def needs(**more: Any) -> TaskNeeds:
    return TaskNeeds(
        **{"share": SHARE, "resource_type": "SCORE", "user": "ada", "vo": "atlas", "jobs_wanted": 10, **more}
    )


def names(verdict: Verdict) -> list[str]:
    return [choice.site for choice in verdict.chosen]


def reasons(verdict: Verdict) -> dict[str, str]:
    return {skip.site: skip.code for skip in verdict.skipped}


def the(verdict: Verdict, name: str = "A") -> Choice:
    return next(choice for choice in verdict.chosen if choice.site == name)


def test_a_task_without_input_goes_anywhere() -> None:
    verdict = broker(needs(), grid(site("B"), site("A")))
    assert names(verdict) == ["A", "B"] and not verdict.skipped


def test_analysis_goes_to_its_input() -> None:
    verdict = broker(needs(inputs=(DATA,)), grid(site("A"), site("B")))
    assert names(verdict) == ["A"] and reasons(verdict) == {"B": "no_data_there"}
    assert verdict.skipped[0].values[:2] == (1, 0)


def test_where_no_queue_near_the_input_will_do_others_are_asked() -> None:
    verdict = broker(needs(inputs=(DATA,)), grid(site("A", status="offline"), site("B")))
    assert names(verdict) == ["B"] and reasons(verdict) == {"A": "site_offline"}


def test_input_that_cannot_be_sent_is_not_moved() -> None:
    stuck = grid(site("A", status="offline"), site("B"), SE_A={"states": {"read_wan": "OFF"}})
    verdict = broker(needs(inputs=(DATA,)), stuck)
    assert not verdict.chosen and reasons(verdict) == {"A": "no_data_there", "B": "no_data_there"} | {
        "A": "site_offline"
    }


@pytest.mark.parametrize("wish", [{"included_sites": ("B",)}, {"excluded_sites": ("A",)}, {"preassigned_site": "B"}])
def test_input_that_only_others_could_read_names_its_storage_and_the_switch(wish: dict[str, Any]) -> None:
    """No queue that the task may go to reads it there, so that only the storage can be changed; else it is the queue."""
    task = needs(inputs=(DATA,), **wish)
    verdict = broker(task, grid(site("A"), site("B"), SE_A={"states": {"read_wan": "OFF"}}))
    (skip,) = (one for one in verdict.skipped if one.site == "B")
    assert skip.code == "source_not_sending"
    assert skip.detail == f"the input {DATA.name} is only at SE_A, where reading from outside (read_wan) is blacklisted"
    freed = broker(task, grid(site("A"), site("B")))
    assert names(freed) == ["B"], "as the advice says"


FULL = {SHARE: {"SCORE": Counts(running=10, activated=41)}}


def test_queues_near_the_input_that_are_full_are_waited_for() -> None:
    verdict = broker(needs(inputs=(DATA,)), grid(site("A", jobs=FULL), site("B")))
    assert not verdict.chosen and reasons(verdict) == {"A": "queue_full_of_type", "B": "no_data_there"}


@pytest.mark.parametrize(
    ("more", "chosen"),
    [
        ({"priority": 2000}, ["B"]),
        ({"priority": 1999}, []),
        ({"io_intensity": 50.0}, ["B"]),
        ({"io_intensity": 51.0}, []),
        ({"io_intensity": None}, []),
        ({"frozen_s": 7201.0}, ["B"]),
        ({"frozen_s": 7200.0}, []),
    ],
)
def test_some_tasks_need_not_wait_for_full_queues_near_their_input(more: dict[str, Any], chosen: list[str]) -> None:
    told = replace(DEFAULT_SETTINGS, io_cutoff=50.0, check_timeout_h=2.0)
    verdict = broker(needs(inputs=(DATA,), **more), grid(site("A", jobs=FULL), site("B")), told)
    assert names(verdict) == chosen


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (InputData("d", 100, 1.0, replicas={"SE_A": Replica(89, 1.0, False)}), "input_incomplete"),
        (InputData("d", 100, 1.0, replicas={"SE_A": Replica(90, 1.0, False)}), ""),
        (InputData("d", 20, 1.0, replicas={"SE_A": Replica(10, 1.0, False)}), ""),
        (InputData("d", 100, 1.0), "input_incomplete"),
        (InputData("d", 100, 1.0, distributed=True, replicas={"SE_A": Replica(5, 1.0, False)}), ""),
        (InputData("d", 100, 1.0, replicas={"SE_A_VP_DISK": Replica(100, 1.0)}), "input_incomplete"),
        (InputData("d", 100, 1.0, replicas={"SE_OFF": Replica(100, 1.0)}), "input_in_downtime"),
    ],
)
def test_a_task_whose_input_is_complete_nowhere_waits(data: InputData, code: str) -> None:
    off = {"states": {"read_lan": "OFF", "read_wan": "TEST"}}
    verdict = broker(needs(inputs=(data,)), grid(site("A"), SE_OFF=off))
    assert (verdict.stopped.code if verdict.stopped else "") == code
    assert verdict.sentence().endswith(".")
    allowed = broker(needs(inputs=(data,), incomplete_input=True), grid(site("A"), SE_OFF=off))
    assert allowed.stopped is None


SCRATCH: dict[str, Any] = {
    "atom_mb": 4096.0,
    "effective_mb": 4096.0,
    "out_disk": 300,
    "out_disk_unit": "kB",
    "work_disk": 500,
    "work_disk_unit": "MB",
}

GPU = '{"gpu_spec": {"vendor": "nvidia"}}'
A100 = (GpuRow("nvidia", "A100"),)
GPUS = {"architectures": [{"type": "gpu", "vendor": ["nvidia"]}]}

RULES: list[tuple[str, TaskNeeds, SiteView, dict[str, Any], str]] = [
    ("all well", needs(), site(), {}, ""),
    ("production queue", needs(), site(type="production"), {}, "other_kind"),
    ("analysis queue", needs(), site(type="analysis"), {}, ""),
    ("production queue, bound to it", needs(preassigned_site="A"), site(type="production"), {}, ""),
    ("offline, bound", needs(preassigned_site="A"), site(status="offline"), {}, "site_offline"),
    ("paused, bound", needs(preassigned_site="A"), site(status="paused"), {}, "site_paused"),
    ("test, bound", needs(preassigned_site="A"), site(status="test"), {}, "site_test_only"),
    ("test, bound, test work", needs(preassigned_site="A", label="test"), site(status="test"), {}, ""),
    ("brokeroff", needs(), site(status="brokeroff"), {}, "site_brokeroff"),
    ("jumbo queue", needs(), site(jumbo=True), {}, "jumbo_queue"),
    ("jumbo queue, bound", needs(preassigned_site="A"), site(jumbo=True), {}, ""),
    ("jumbo job", needs(jumbo=True), site(), {}, "no_jumbo_queue"),
    ("jumbo job, few events", needs(jumbo=True), site(jumbo=True, min_events_for_jumbo=1), {}, "few_events"),
    ("brokeroff, bound", needs(preassigned_site="A"), site(status="brokeroff"), {}, ""),
    ("brokeroff, listed", needs(listed_sites=("A", "B")), site(status="brokeroff"), {}, ""),
    ("test", needs(), site(status="test"), {}, "site_test_only"),
    ("test, test", needs(label="test"), site(status="test"), {}, ""),
    ("too intense", needs(io_intensity=101.0), site(max_io_intensity=100.0), {}, "io_intensity"),
    ("intense enough", needs(io_intensity=100.0), site(max_io_intensity=100.0), {}, ""),
    ("virtual", needs(avoid_vp=True), site(inputs=("X_VP_DISK",)), {}, "virtual_storage"),
    ("virtual, allowed", needs(), site(inputs=("X_VP_DISK",)), {}, ""),
    ("8 cores on 1", needs(cores=8), site(), {}, "too_few_cores"),
    ("8 cores on 4", needs(cores=8), site(cores=4), {}, ""),
    ("1 core on 8", needs(), site(cores=8), {}, "multi_core_only"),
    ("any cores on 8", needs(cores=0), site(cores=8), {}, ""),
    ("1 core on 8, bound", needs(preassigned_site="A"), site(cores=8), {}, ""),
    ("more cores than wanted", needs(cores=0, max_cores=4), site(cores=8), {}, "too_many_cores"),
    ("GPU queue", needs(), site(switches={"gpu": ""}), {}, "hardware_reserved"),
    ("no share", needs(processing_type="simul"), site(policy="type=simul:0%"), {}, "zero_share"),
    ("no share, bound", needs(processing_type="simul", preassigned_site="A"), site(policy="type=simul:0%"), {}, ""),
    ("busy disks", needs(disk_io_kbps=101.0), site(max_disk_io_kbps=100.0, disk_io_kbps=150.0), {}, "disk_io_busy"),
    (
        "busy disks, not to a whole number",
        needs(disk_io_kbps=801.0, cores=8),
        site(cores=8, max_disk_io_kbps=100.0, disk_io_kbps=150.0),
        {},
        "disk_io_busy",
    ),
    ("memory equal", needs(memory_mb=2000, base_memory_mb=200), site(max_memory_mb=1980), {}, ""),
    ("memory", needs(memory_mb=2000, base_memory_mb=202), site(max_memory_mb=1980), {}, "low_memory"),
    ("memory too low", needs(memory_mb=2000), site(min_memory_mb=1801), {}, "high_memory"),
    (
        "memory per core",
        needs(memory_mb=2000, memory_per_core=True, base_memory_mb=500, cores=8),
        site(cores=8, max_memory_mb=14_849),
        {},
        "low_memory",
    ),
    ("event service", needs(event_service=True), site(job_seed="all"), {}, ""),
    ("no event service", needs(event_service=True), site(), {}, "no_event_service"),
    ("urgent events", needs(event_service=True, priority=899), site(job_seed="eshigh"), {}, "event_service_high_only"),
    ("events only", needs(), site(job_seed="es"), {}, "event_service_only"),
    (
        "events in one core",
        needs(event_service=True),
        site("P/SCORE", parent="P", job_seed="all", cores=1),
        {},
        "event_service_needs_cores",
    ),
    ("scratch equal", needs(**SCRATCH), site(work_dir_mb=5796), {}, ""),
    ("scratch", needs(**SCRATCH), site(work_dir_mb=5795), {}, "scratch_disk"),
    ("scratch, read directly", needs(**SCRATCH, direct_io=1), site(work_dir_mb=1700, direct_io=True), {}, ""),
    ("time", needs(walltime_s=3601), site(max_walltime_s=3600), {}, "short_walltime"),
    ("time equal", needs(walltime_s=3600), site(max_walltime_s=3600), {}, ""),
    ("too short", needs(walltime_s=59), site(min_walltime_s=60), {}, "long_walltime"),
    ("scouts", needs(walltime_s=60, scouting=True), site(max_walltime_s=86_399), {}, "short_for_scouts"),
    ("scouts, a day", needs(walltime_s=60, scouting=True), site(max_walltime_s=86_400), {}, ""),
    ("scouts, bound", needs(walltime_s=60, scouting=True, preassigned_site="A"), site(max_walltime_s=3600), {}, ""),
    ("unknown time", needs(walltime_known=False), site(max_walltime_s=86_399), {}, "short_for_unknown"),
    (
        "walltime, no CPU time",
        needs(walltime_known=False, walltime_s=60),
        site(max_walltime_s=86_399),
        {},
        "short_for_unknown",
    ),
    ("merge jobs", needs(merging=True, walltime_s=60), site(max_walltime_s=86_399), {}, "short_for_unknown"),
    ("no release", needs(trans_home="AnalysisTransforms-Athena_21.0.38"), site(), {}, "no_release"),
    ("any release", needs(trans_home="AnalysisTransforms-Athena_21.0.38"), site(releases=("ANY",)), {}, ""),
    ("no release, bound", needs(trans_home="AnalysisTransforms-Athena_21.0.38", preassigned_site="A"), site(), {}, ""),
    ("a part of a queue has its own type", needs(), busy("P/MCORE", Counts(activated=41), parent="P"), {}, ""),
    ("switch for both kinds", needs(), site(type="production", switches={"grandly_unified": ""}), {}, ""),
    ("direct only", needs(direct_io=2), site(), {}, "no_direct_access"),
    ("direct only, possible", needs(direct_io=2), site(direct_io=True), {}, ""),
    ("no output storage", needs(), site(outputs=()), {}, "no_output_storage"),
    ("output storage full", needs(), site(), {"SE_A": {"space_free_gb": 199.9}}, "storage_full"),
    ("output storage has room", needs(), site(), {"SE_A": {"space_free_gb": 200.0}}, ""),
    ("output storage unknown", needs(), site(), {"SE_A": {"space_free_gb": None}}, ""),
    ("cannot be read", needs(), site(), {"SE_A": {"states": {"read_lan": "OFF"}}}, "input_not_readable"),
    ("cannot be written", needs(), site(), {"SE_A": {"states": {"write_lan": "TEST"}}}, "output_not_writable"),
    ("takes nothing, nothing is moved", needs(), site(), {"SE_A": {"states": {"write_wan": "OFF"}}}, ""),
    ("quota there", needs(), site(), {"SE_A": {"over_quota": True}}, "local_quota"),
    ("no pilots", needs(), site(pilots_3h=0), {}, "no_pilots"),
    ("no pilots, test", needs(label="rc_test"), site(pilots_3h=0), {}, ""),
    ("pilots not counted", needs(), site(pilots_3h=None), {}, ""),
    ("told slots", needs(), site(pilots_3h=0, slots=(Slots(None, None, 5),)), {}, ""),
    ("excluded", needs(excluded_sites=("A",)), site(), {}, "excluded"),
    ("excluded by pattern", needs(excluded_sites=("*",)), site(), {}, "excluded"),
    ("parent excluded", needs(excluded_sites=("P",)), site("P/SCORE", parent="P"), {}, "excluded"),
    ("not included", needs(included_sites=("B", "C*")), site(), {}, "not_included"),
    ("included", needs(included_sites=("B", "A")), site(), {}, ""),
    ("not included, AUTO", needs(included_sites=("B", "AUTO")), site(), {}, ""),
    ("cloud", needs(cloud="DE"), site(cloud="FR"), {}, "other_cloud"),
    ("any cloud", needs(cloud="any"), site(cloud="FR"), {}, ""),
    ("taken back, bound", needs(avoided_sites=("A",), preassigned_site="A"), site(), {}, ""),
    ("GPU, bound", needs(architecture=GPU, preassigned_site="A"), site(releases=("ANY",)), {}, "no_gpu"),
    ("GPU there, bound", needs(architecture=GPU, preassigned_site="A"), site(software=GPUS, gpus=A100), {}, ""),
    ("40 queued", needs(), busy(counts=Counts(running=5, activated=40)), {}, ""),
    ("41 queued", needs(), busy(counts=Counts(running=5, activated=30, defined=11)), {}, "queue_full_of_type"),
    ("61 queued, 30 run", needs(), busy(counts=Counts(running=30, activated=61)), {}, "queue_full_of_type"),
    ("41 of another type", needs(resource_type="MCORE"), busy(counts=Counts(activated=41)), {}, ""),
    ("41 queued, bound", needs(preassigned_site="A"), busy(counts=Counts(activated=41)), {}, ""),
]


def test_a_queue_has_room_for_jobs_of_the_size_that_the_task_asks_for() -> None:
    """nGBPerJob: input, output and work folder of a job that copies its input."""
    for room_mb, code in ((10_239, "scratch_disk"), (10_240, "")):
        verdict = broker(needs(job_size_mb=10 * 1024), grid(site(work_dir_mb=room_mb)))
        assert reasons(verdict) == ({"A": code} if code else {})


@pytest.mark.parametrize(("task", "view", "more", "code"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(task: TaskNeeds, view: SiteView, more: dict[str, Any], code: str) -> None:
    verdict = broker(task, grid(view, **more))
    assert reasons(verdict) == ({view.name: code} if code else {})
    assert all(skip.detail for skip in verdict.skipped)


def test_a_site_that_is_known_binds_the_work() -> None:
    verdict = broker(needs(preassigned_site="B"), grid(site("A"), site("B"), site("P/SCORE", parent="P")))
    assert names(verdict) == ["B"] and set(reasons(verdict).values()) == {"not_preassigned"}
    parts = broker(needs(preassigned_site="P"), grid(site("A"), site("P/SCORE", parent="P"), site("P", is_parent=True)))
    assert names(parts) == ["P/SCORE"] and reasons(parts) == {"A": "not_preassigned"}


def divided(name: str, **more: Any) -> list[SiteView]:
    """A queue of slots of 4 cores that cuts them to size."""
    whole = site(name, capability="ucore", cores=4, max_memory_mb=16_000, max_walltime_s=172_800, **more)
    return [replace(whole, is_parent=True), *parts_of(whole, DEFAULT_TABLE)]


def test_work_that_is_bound_to_a_divided_queue_gets_the_variants_of_its_size() -> None:
    one = needs(preassigned_site="P", memory_mb=2000, memory_per_core=True, cpu_hs06s=3600.0)
    assert names(broker(one, grid(*divided("P")))) == ["P/SCORE"]
    assert names(broker(replace(one, cores=4), grid(*divided("P")))) == ["P/MCORE"]


def test_work_that_is_bound_comes_back_to_its_queue_after_its_jobs_were_taken_back() -> None:
    """Closed while the queue was offline: judged anew by the same variants as at first."""
    bound = needs(preassigned_site="P", memory_mb=2000, memory_per_core=True, avoided_sites=("P",))
    assert names(broker(bound, grid(*divided("P"), site("A")))) == ["P/SCORE"]
    two = replace(bound, preassigned_site="", listed_sites=("P", "A"))
    assert names(broker(two, grid(*divided("P"), site("A")))) == ["A"]
    assert names(broker(two, grid(*divided("P"), site("A", status="offline")))) == ["P/SCORE"]


CLOSED_AT_A = AnalysisFacts(ended={"A": Ended(closed=2)})


@pytest.mark.parametrize(
    ("facts", "avoided", "code"), [(CLOSED_AT_A, ("A",), "closed_there"), (NO_FACTS, ("A",), "taken_back")]
)
def test_work_goes_where_its_jobs_were_not_taken_back_if_it_can(
    facts: AnalysisFacts, avoided: tuple[str, ...], code: str
) -> None:
    again = needs(avoided_sites=avoided)
    elsewhere = broker(again, grid(site("A"), site("B")), facts=facts)
    assert names(elsewhere) == ["B"] and reasons(elsewhere) == {"A": code}
    # The input is brought to another queue rather than its jobs back to the one near it; and so with AUTO.
    moved = broker(replace(again, inputs=(DATA,)), grid(site("A"), site("B")), facts=facts)
    assert names(moved) == ["B"] and reasons(moved) == {"A": code}
    auto = broker(replace(again, included_sites=("AUTO", "A")), grid(site("A"), site("B")), facts=facts)
    assert names(auto) == ["B"] and reasons(auto) == {"A": code}
    # A queue that is full for the moment is one that it may use, and the same queue is not filled beyond what it may have.
    waits = broker(again, grid(site("A"), site("B", jobs=FULL)), facts=facts)
    assert reasons(waits) == {"A": code, "B": "queue_full_of_type"}
    full = broker(again, grid(site("A", jobs=FULL)), facts=facts)
    assert reasons(full) == {"A": "queue_full_of_type"}


@pytest.mark.parametrize(
    ("task", "others"),
    [
        (needs(included_sites=("A",)), [site("B")]),
        (needs(excluded_sites=("B",)), [site("B")]),
        (needs(), [site("B", status="offline")]),
        (needs(inputs=(DATA,)), [site("B", only_local_data=True)]),
        (needs(), [site("B_HOSPITAL", status="offline")]),
    ],
)
def test_work_comes_back_at_once_to_the_only_queue_that_is_left_to_it(task: TaskNeeds, others: list[SiteView]) -> None:
    again = replace(task, avoided_sites=("A",))
    for facts in (CLOSED_AT_A, NO_FACTS):
        assert names(broker(again, grid(site("A"), *others), facts=facts)) == ["A"]


def test_what_is_not_asked_of_the_site_that_a_task_names_is_said() -> None:
    named = needs(trans_home="AnalysisTransforms-Athena_21.0.38", preassigned_site="A")
    not_asked = "needs Athena 21.0.38 on any platform; the site publishes no software."
    said = broker(named, grid(site(), site("B"))).sentence()
    assert said.endswith(f" Not applied, because the task names its site: {not_asked}")
    assert "Not asked" not in broker(named, grid(site(releases=("ANY",)))).sentence()
    assert broker(needs(preassigned_site="A"), grid(site())).sentence() == "1 of 1 site was chosen, A."


def test_an_endpoint_in_the_place_of_a_site_stands_for_its_readers() -> None:
    verdict = broker(needs(preassigned_site="SE_B"), grid(site("A"), site("B")))
    assert names(verdict) == ["B"]
    assert (
        broker(needs(preassigned_site="SE_B"), grid(site("A"), site("B"))).skipped[0].detail == "the work is bound to B"
    )


def test_auto_lets_others_in_when_no_listed_queue_is_left() -> None:
    task = needs(included_sites=("AUTO", "A"))
    assert reasons(broker(task, grid(site("A"), site("B")))) == {"B": "not_included"}
    assert names(broker(task, grid(site("A", status="offline"), site("B")))) == ["B"]


def test_hospitals_are_for_what_no_other_queue_takes() -> None:
    verdict = broker(needs(), grid(site("A"), site("B_HOSPITAL")))
    assert names(verdict) == ["A"] and reasons(verdict) == {"B_HOSPITAL": "hospital"}
    assert names(broker(needs(), grid(site("B_HOSPITAL")))) == ["B_HOSPITAL"]


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        (Ended(3, 4, 2), "closed_there"),
        (Ended(0, 9, 2), "closed_there"),
        (Ended(3, 6), "failing_there"),
        (Ended(3, 5), ""),
        (Ended(0, 4), ""),
        (Ended(0, 5), "failing_there"),
        (Ended(100, 0), ""),
    ],
)
def test_queues_where_the_task_fares_badly(ended: Ended, code: str) -> None:
    facts = AnalysisFacts(ended={"A": ended})
    assert reasons(broker(needs(), grid(site(), site("B")), facts=facts)) == ({"A": code} if code else {})
    assert not reasons(broker(needs(merging=True), grid(site()), facts=facts))
    bound = broker(needs(preassigned_site="A"), grid(site()), facts=facts)
    assert names(bound) == ["A"]


def test_a_task_that_fails_at_all_queues_that_it_may_use_gets_its_jobs_there() -> None:
    facts = AnalysisFacts(ended={"A": Ended(0, 9), "B": Ended(1, 9)})
    offline = site("C", status="offline")
    verdict = broker(needs(), grid(site("A"), site("B"), offline), facts=facts)
    assert sorted(names(verdict)) == ["A", "B"] and reasons(verdict) == {"C": "site_offline"}
    # A queue that is full for the moment is one that the task may use: it is waited for.
    waited_for = broker(needs(), grid(site("A"), site("C", jobs=FULL)), facts=facts)
    assert reasons(waited_for) == {"A": "failing_there", "C": "queue_full_of_type"}
    assert names(broker(needs(), grid(site("A"), site("D")), facts=facts)) == ["D"]


def test_failed_and_closed_jobs_count_together_for_work_that_is_bound() -> None:
    told = replace(DEFAULT_SETTINGS, min_bad=5)
    verdict = broker(needs(merging=False), grid(site()), told, AnalysisFacts(ended={"A": Ended(3, 4, 0)}))
    assert names(verdict) == ["A"]


def test_a_user_with_many_waiting_jobs_waits() -> None:
    jobs = {SHARE: {"MCORE": Counts(running=100, activated=260)}}
    queue_users = {f"user{number}": UserJobs(50, 10) for number in range(4)}
    for queued, chosen in ((60, ["A"]), (61, [])):
        users = {SHARE: {**queue_users, "ada": UserJobs(queued, 30)}}
        view = site(jobs=jobs, users=users, started_per_h=12.0)
        assert names(broker(needs(), grid(view))) == chosen
    assert names(broker(needs(merging=True), grid(view))) == ["A"]


def test_queues_busier_than_others_are_left_out_while_there_are_others() -> None:
    # The share's ratio is 1.5: queues above 1.8 are too busy when more than 20 wait there.
    calm = busy("C", Counts(running=90, activated=125))
    for queued, code in ((25, {"A": "overloaded"}), (20, {})):
        verdict = broker(needs(), grid(busy("A", Counts(running=10, activated=queued)), calm))
        assert reasons(verdict) == code
    idle = broker(needs(), grid(busy("A", Counts(activated=25)), calm))
    assert [skip.detail for skip in idle.skipped] == ["25 jobs are queued and none runs"]
    alone = broker(needs(), grid(busy("A", Counts(running=10, activated=25)), replace(calm, status="offline")))
    assert names(alone) == ["A"]


def test_busy_queues_with_virtual_input_go_first() -> None:
    data = InputData("d", 10, 1.0, replicas={"X_VP_DISK": Replica(10, 1.0), "SE_A": Replica(9, 1.0, False)})
    virtual = busy("V", Counts(running=10, activated=30), inputs=("X_VP_DISK",))
    real = busy("A", Counts(running=10, activated=30))
    calm = busy("C", Counts(running=100))
    verdict = broker(needs(inputs=(data,)), grid(virtual, real, calm))
    assert names(verdict) == ["A"]
    assert reasons(verdict) == {"V": "overloaded_virtual", "C": "no_data_there"}


def test_the_original_weight() -> None:
    counts = Counts(running=50, activated=30, assigned=5, starting=3, defined=2)
    assert the(broker(needs(), grid(busy(counts=counts)))).weight == pytest.approx(51 / 41)


def test_input_on_disk_and_on_tape_in_the_weight() -> None:
    tape = Replica(10, 1.0, is_tape=True)
    both = InputData("d", 10, 1.0, replicas={"SE_A": Replica(10, 1.0)})
    more = InputData("e", 10, 1.0, replicas={"SE_A": tape})
    verdict = broker(needs(inputs=(both, more)), grid(site("A")))
    assert the(verdict).weight == pytest.approx(1.001)


def test_input_in_the_weight_of_queues_to_which_it_is_moved() -> None:
    data = InputData("d", 10, 51_200.0, replicas={"SE_A": Replica(10, 51_200.0), "SE_B": Replica(5, 10_240.0, False)})
    verdict = broker(needs(inputs=(data,)), grid(site("A", cores=8), site("B"), site("C")))
    assert [(c.site, c.weight) for c in verdict.chosen] == [("B", pytest.approx(2)), ("C", pytest.approx(1))]
    # A queue without any of it is not said to have some.
    assert [c.factors[-1] for c in verdict.chosen] == [
        ("input there", pytest.approx(2)),
        ("input comes from SE_A, SE_B", pytest.approx(1)),
    ]


def test_queues_that_would_read_from_elsewhere_weigh_less_for_jobs_that_are_held_back_there() -> None:
    verdict = broker(
        needs(inputs=(DATA,)), grid(site("A", status="offline"), busy("B", Counts(running=7, throttled=3)))
    )
    assert the(verdict, "B").weight == pytest.approx(8 / 4)


@pytest.mark.parametrize(("weight", "best"), [("original", "L"), ("new", "H"), ("refined", "H")])
def test_the_new_weights_send_tasks_to_queues_of_their_class(weight: Any, best: str) -> None:
    facts = AnalysisFacts(task_class=TaskClass.A, site_classes={"H": SiteClass.HI, "L": SiteClass.LO})
    slow = busy("L", Counts(running=30))
    verdict = broker(needs(), grid(busy("H"), slow), replace(DEFAULT_SETTINGS, base_weight=weight), facts)
    assert names(verdict)[0] == best and len(verdict.chosen) == 2


def test_the_best_ten() -> None:
    sites = [busy(f"S{number:02}", Counts(running=number)) for number in range(12)]
    verdict = broker(needs(), grid(*sites))
    assert names(verdict) == [f"S{number:02}" for number in range(11, 1, -1)]
    assert reasons(verdict) == {"S00": "low_weight", "S01": "low_weight"}
    spread = tuple(
        InputData("d", 10, 1.0, distributed=True, replicas={f"SE_{s.name}": Replica(1, 1.0, False) for s in sites})
        for _ in "x"
    )
    assert len(broker(needs(inputs=spread), grid(*sites)).chosen) == 12


def test_how_near_a_queue_came_compares_jobs_with_jobs_and_weights_with_weights() -> None:
    found = {
        skip.code: skip
        for facts in (Ended(3, 8), Ended(3, 4, 2))
        for skip in broker(needs(), grid(site("A"), site("B")), facts=AnalysisFacts(ended={"A": facts})).skipped
    }
    running = [site(f"S{n:02}", jobs={SHARE: {"MCORE": Counts(running=100 + n)}}) for n in range(11)]
    found |= {skip.code: skip for skip in broker(needs(), grid(*running)).skipped}
    assert {code: (skip.detail, skip.values[:2]) for code, skip in found.items()} == {
        "failing_there": (
            "8 jobs have failed or been closed in 6 h; with 3 finished, fewer than 6 are allowed",
            (6, 8),
        ),
        "closed_there": ("2 jobs of the task were closed there in 6 h, the limit is 0", (0, 2)),
        "low_weight": ("the lowest weight among the best 10 is 102, the queue has 101", (102.0, 101.0)),
    }


def test_queues_that_the_task_uses_already_come_first() -> None:
    sites = [busy(f"S{number}", Counts(running=number)) for number in range(4)]
    assert names(broker(needs(used_sites=("S1",)), grid(*sites))) == ["S1", "S3", "S2", "S0"]


def test_a_least_weight() -> None:
    verdict = broker(needs(), grid(site("A"), busy("B")), replace(DEFAULT_SETTINGS, min_weight=2))
    assert names(verdict) == ["B"] and reasons(verdict) == {"A": "below_min_weight"}


def test_chance_decides_between_equals() -> None:
    draws = iter([0.9, 0.1])
    assert names(broker(needs(), grid(site("A"), site("B")), draw=lambda: next(draws))) == ["B", "A"]


def test_room_for_more_jobs() -> None:
    choice = the(broker(needs(), grid(busy(counts=Counts(running=30, activated=12)))))
    assert (choice.queued, choice.cap) == (12, 60)


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (AnalysisFacts(usage=UserUsage(running_jobs=1001)), "user_running_jobs"),
        (AnalysisFacts(usage=UserUsage(running_jobs=1001), is_group=True), ""),
        (AnalysisFacts(usage=UserUsage(running_jobs=2001), is_group=True), "user_running_jobs"),
        (AnalysisFacts(share=ShareState(91.0), task_class=TaskClass.C), "class_c_waits"),
        (AnalysisFacts(quotas=(Quota(11, 10),)), "over_quota"),
    ],
)
def test_a_user_who_has_enough_is_stopped_before_any_queue_is_asked(facts: AnalysisFacts, code: str) -> None:
    told = replace(DEFAULT_SETTINGS, user_caps=Caps(1000), group_caps=Caps(2000))
    verdict = broker(needs(), grid(site()), told, facts)
    assert verdict.code == code and bool(verdict.chosen) is not bool(code)


def test_parameters_come_from_the_configuration() -> None:
    assert AnalysisSettings.from_configuration(DEFAULTS, vo="atlas", label="user", share=SHARE) == AnalysisSettings()
    rows = [
        Row("jedi", "anal_jobbroker", "BASE_WEIGHT", "refined"),
        Row("jedi", "anal_jobbroker", "IO_INTENSITY_CUTOFF_USER", "40", "int", "atlas"),
        Row("jedi", "jobbroker", f"MIN_WEIGHT_user_{SHARE}", "0.5", "float"),
    ]
    told = AnalysisSettings.from_configuration(DEFAULTS.having(*rows), vo="atlas", label="user", share=SHARE)
    assert (told.base_weight, told.io_cutoff, told.min_weight) == ("refined", 40.0, 0.5)
    mistyped = DEFAULTS.having(Row("jedi", "anal_jobbroker", "BASE_WEIGHT", "newest"))
    assert AnalysisSettings.from_configuration(mistyped).base_weight == "original"


NAMES = [f"S{number}" for number in range(6)] + ["S6_HOSPITAL"]
small = st.integers(0, 100)
counts = st.builds(Counts, small, small, small, small, small)
site_views = st.builds(
    lambda name, **more: site(name, **more),
    st.sampled_from(NAMES),
    status=st.sampled_from(["online"] * 4 + ["offline", "test", "brokeroff"]),
    type=st.sampled_from(["analysis", "unified", "production"]),
    cores=st.sampled_from([0, 1, 1, 8]),
    pilots_3h=st.sampled_from([None, 0, 5]),
    jobs=st.dictionaries(
        st.sampled_from([SHARE, "Other"]), st.dictionaries(st.sampled_from(["SCORE", "MCORE"]), counts)
    ),
    users=st.dictionaries(
        st.just(SHARE), st.dictionaries(st.sampled_from(["ada", "bob"]), st.builds(UserJobs, small, small))
    ),
    started_per_h=st.floats(0, 50),
    max_io_intensity=st.sampled_from([0.0, 100.0]),
    max_memory_mb=st.sampled_from([0, 2000, 16_000]),
    max_walltime_s=st.sampled_from([0, 3600, 86_400]),
    work_dir_mb=st.sampled_from([0, 1000, 20_000]),
    releases=st.sampled_from([(), ("ANY",)]),
    batch_jobs=small,
)
grids = st.lists(site_views, unique_by=lambda one: one.name, max_size=7).map(lambda sites: grid(*sites))
replicas = st.dictionaries(
    st.sampled_from([*(f"SE_{name}" for name in NAMES), "X_VP_DISK"]),
    st.builds(Replica, st.integers(0, 10), st.floats(0, 1e6), st.booleans(), st.booleans()),
)
data_sets = st.builds(
    InputData,
    st.sampled_from(["d", "e"]),
    st.integers(0, 10),
    st.floats(0, 1e6),
    st.booleans(),
    st.booleans(),
    replicas,
)
tasks = st.builds(
    needs,
    cores=st.sampled_from([None, 0, 1, 8]),
    inputs=st.lists(data_sets, max_size=2).map(tuple),
    priority=st.sampled_from([0, 1000, 2000]),
    preassigned_site=st.sampled_from(["", "", "", "S1", "SE_S2", "NOWHERE"]),
    included_sites=st.sampled_from([(), (), ("S*",), ("S1", "AUTO"), ("S2",)]),
    excluded_sites=st.sampled_from([(), ("S3",)]),
    used_sites=st.sampled_from([(), ("S4",)]),
    merging=st.booleans(),
    avoid_vp=st.booleans(),
    io_intensity=st.none() | st.floats(0, 500),
    resource_type=st.sampled_from(["", "SCORE"]),
    jobs_wanted=st.integers(0, 5000),
)
told = st.builds(
    AnalysisSettings,
    base_weight=st.sampled_from(["original", "new", "refined"]),
    io_cutoff=st.none() | st.just(100.0),
    min_weight=st.sampled_from([0.0, 0.5]),
    most_chosen=st.sampled_from([2, 10]),
    user_caps=st.builds(Caps, st.none() | small),
)
known = st.builds(
    AnalysisFacts,
    usage=st.builds(UserUsage, small, small),
    task_class=st.none() | st.sampled_from(TaskClass),
    site_classes=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(SiteClass)),
    ended=st.dictionaries(st.sampled_from(NAMES), st.builds(Ended, small, small, st.integers(0, 1))),
)


@given(task=tasks, some=grids, setting=told, facts=known, seed=st.integers())
def test_every_queue_is_chosen_or_explained_once_whatever_the_order(
    task: TaskNeeds, some: Grid, setting: AnalysisSettings, facts: AnalysisFacts, seed: int
) -> None:
    verdict = broker(task, some, setting, facts)
    if verdict.stopped is None:
        assert sorted([*names(verdict), *(skip.site for skip in verdict.skipped)]) == sorted(some.sites)
    for skip in verdict.skipped:
        assert refusals.get(skip.code) and skip.detail
    for choice in verdict.chosen:
        assert math.isfinite(choice.weight) and choice.weight >= 0
        assert choice.weight == pytest.approx(math.prod(value for _, value in choice.factors))
    shuffled = list(some.sites.values())
    random.Random(seed).shuffle(shuffled)
    assert broker(task, Grid({one.name: one for one in shuffled}, some.endpoints), setting, facts) == verdict


def candidates(verdict: Verdict) -> set[str]:
    """Queues that no rule objected to before the best were taken."""
    beaten = {skip.site for skip in verdict.skipped if skip.code == "low_weight"}
    return set(names(verdict)) | beaten


EASED: list[dict[str, Any]] = [
    {"memory_mb": 0},
    {"walltime_s": 60},
    {"out_disk": 0},
    {"trans_home": ""},
    {"io_intensity": None},
    {"excluded_sites": ()},
    {"direct_io": 0},
    {"max_cores": 0},
    {"cloud": ""},
]


@given(
    task=st.builds(
        needs,
        memory_mb=st.sampled_from([0, 1900, 4000]),
        walltime_s=st.sampled_from([60, 4000, 90_000]),
        out_disk=st.sampled_from([0, 1000]),
        atom_mb=st.just(900.0),
        effective_mb=st.just(900.0),
        trans_home=st.sampled_from(["", "AnalysisTransforms-Athena_21.0.38"]),
        io_intensity=st.none() | st.floats(0, 500),
        excluded_sites=st.sampled_from([(), ("S3", "S1")]),
        direct_io=st.sampled_from([0, 2]),
        max_cores=st.sampled_from([0, 4]),
        cores=st.sampled_from([0, 1, 8]),
        cloud=st.sampled_from(["", "DE"]),
    ),
    some=st.lists(site_views, unique_by=lambda one: one.name, max_size=6).map(
        lambda sites: grid(*(one for one in sites if not one.name.endswith("HOSPITAL")))
    ),
    eased=st.sampled_from(EASED),
    facts=known.map(lambda facts: replace(facts, ended={})),
)
def test_a_task_that_asks_for_less_loses_no_queue(
    task: TaskNeeds, some: Grid, eased: dict[str, Any], facts: AnalysisFacts
) -> None:
    """Of tasks without input: what is near it decides for the others, so that one more queue there ends the search.

    A limit from below, on memory or time, refuses who asks for less: there are none here. Hospitals, lists with AUTO, the
    comparison of busy queues with others, and queues where the task has fared badly are left out: each asks what else is left.
    """
    setting = replace(DEFAULT_SETTINGS, overload_min_queued=10_000)
    before = broker(task, some, setting, facts)
    after = broker(replace(task, **eased), some, setting, facts)
    assert candidates(before) <= candidates(after)
