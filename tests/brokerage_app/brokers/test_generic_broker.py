import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.advice.remedies import helping, search
from brokerage_app.advice.whatif import Conditions
from brokerage_app.brokers import generic
from brokerage_app.brokers.choosing import decide
from brokerage_app.brokers.funnel import GENERIC, order_of
from brokerage_app.formulas.queue_room import QueueUsers, part_of
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.needs import InputData, Replica, TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint, Grid
from jedisite import refusals

NAMES = [f"SITE_{letter}" for letter in "ABCDEFGH"]
SITE = SiteView("SITE_A")

numbers = st.integers(0, 50_000)
site_views = st.builds(
    SiteView,
    name=st.sampled_from(NAMES),
    status=st.sampled_from(["online", "offline", "test", "brokeroff", "paused"]),
    cores=st.integers(-1, 64),
    max_memory_mb=numbers,
    min_memory_mb=numbers,
    max_walltime_s=numbers,
    min_walltime_s=numbers,
    work_dir_mb=numbers,
    running=numbers,
    queued=numbers,
    defined=numbers,
    core_power=st.floats(0, 30),
    capability=st.sampled_from(["", "ucore"]),
)
site_lists = st.lists(site_views, unique_by=lambda site: site.name, max_size=8)
patterns = st.lists(st.sampled_from([*NAMES, "SITE_*", "*_B", "NOWHERE"]), max_size=3).map(tuple)
task_needs = st.builds(
    TaskNeeds,
    cores=st.none() | st.integers(0, 64),
    memory_mb=numbers,
    memory_per_core=st.booleans(),
    base_memory_mb=numbers,
    walltime_s=numbers,
    cpu_hs06s=st.floats(0, 1e7),
    cpu_efficiency_percent=st.integers(0, 100),
    disk_mb=numbers,
    label=st.sampled_from(["user", "managed", "test"]),
    included_sites=patterns,
    excluded_sites=patterns,
    preassigned_site=st.sampled_from(["", *NAMES]),
)


@given(needs=task_needs, sites=site_lists)
def test_every_site_is_either_chosen_or_explained(needs: TaskNeeds, sites: list[SiteView]) -> None:
    verdict = generic.broker(needs, sites)
    named = [choice.site for choice in verdict.chosen] + [skip.site for skip in verdict.skipped]
    assert sorted(named) == sorted(site.name for site in sites)
    assert sorted(name for listed in verdict.compact().values() for name in listed) == sorted(
        skip.site for skip in verdict.skipped
    )


@given(needs=task_needs, sites=site_lists, seed=st.integers())
def test_the_order_of_the_sites_does_not_matter(needs: TaskNeeds, sites: list[SiteView], seed: int) -> None:
    shuffled = list(sites)
    random.Random(seed).shuffle(shuffled)
    assert generic.broker(needs, shuffled) == generic.broker(needs, sites)


@given(needs=task_needs, sites=site_lists)
def test_every_code_is_registered_and_has_a_sentence(needs: TaskNeeds, sites: list[SiteView]) -> None:
    verdict = generic.broker(needs, sites)
    for skip in verdict.skipped:
        assert refusals.get(skip.code)
        assert skip.detail
    assert verdict.sentence().endswith(".")
    assert bool(verdict.code) is not bool(verdict.chosen)


@given(needs=task_needs, sites=site_lists)
def test_weights_are_positive_products_of_their_factors_and_fall(needs: TaskNeeds, sites: list[SiteView]) -> None:
    verdict = generic.broker(needs, sites)
    weights = [choice.weight for choice in verdict.chosen]
    assert weights == sorted(weights, reverse=True)
    for choice in verdict.chosen:
        product = 1.0
        for _, value in choice.factors:
            product *= value
        assert choice.weight == pytest.approx(product) and choice.weight > 0


RULES: Sequence[tuple[str, TaskNeeds, SiteView, str]] = [
    ("online site", TaskNeeds(), SITE, ""),
    ("event service", TaskNeeds(event_service=True), replace(SITE, job_seed="all"), ""),
    ("no event service", TaskNeeds(event_service=True), replace(SITE, job_seed="std"), "no_event_service"),
    (
        "no channel for ranges",
        TaskNeeds(event_service=True),
        replace(SITE, job_seed="all", no_channel="its pilots are PanDA's"),
        "no_event_channel",
    ),
    (
        "no channel for ranges, bound",
        TaskNeeds(event_service=True, preassigned_site="SITE_A"),
        replace(SITE, no_channel="its pilots are PanDA's"),
        "no_event_channel",
    ),
    ("no channel, no ranges", TaskNeeds(), replace(SITE, no_channel="its pilots are PanDA's"), ""),
    ("not set up for it", TaskNeeds(event_service=True), SITE, "no_event_service"),
    ("not set up for it, bound", TaskNeeds(event_service=True, preassigned_site="SITE_A"), SITE, ""),
    ("urgent events only", TaskNeeds(event_service=True), replace(SITE, job_seed="eshigh"), "event_service_high_only"),
    ("urgent events", TaskNeeds(event_service=True, priority=900), replace(SITE, job_seed="eshigh"), ""),
    ("scouts of events", TaskNeeds(event_service=True, scouting=True), replace(SITE, job_seed="eshigh"), ""),
    ("events only", TaskNeeds(), replace(SITE, job_seed="es"), "event_service_only"),
    ("urgent events or others", TaskNeeds(), replace(SITE, job_seed="eshigh"), ""),
    ("offline", TaskNeeds(), replace(SITE, status="offline"), "site_offline"),
    ("unknown status", TaskNeeds(), replace(SITE, status="paused"), "site_paused"),
    ("brokeroff", TaskNeeds(), replace(SITE, status="brokeroff"), "site_brokeroff"),
    ("jumbo queue", TaskNeeds(), replace(SITE, jumbo=True), "jumbo_queue"),
    ("jumbo queue, bound", TaskNeeds(preassigned_site="SITE_A"), replace(SITE, jumbo=True), ""),
    ("jumbo job", TaskNeeds(jumbo=True), SITE, "no_jumbo_queue"),
    ("few", TaskNeeds(jumbo=True), replace(SITE, jumbo=True, min_events_for_jumbo=1), "few_events"),
    ("enough", TaskNeeds(jumbo=True, ready_events=1), replace(SITE, jumbo=True, min_events_for_jumbo=1), ""),
    *(
        (f"{status} but bound to it", TaskNeeds(preassigned_site="SITE_A"), replace(SITE, status=status), code)
        for status, code in (
            ("offline", "site_offline"),
            ("paused", "site_paused"),
            ("test", "site_test_only"),
            ("brokeroff", ""),
            ("standby", ""),
        )
    ),
    ("test, bound to it", TaskNeeds(preassigned_site="SITE_A", label="test"), replace(SITE, status="test"), ""),
    ("test site, user", TaskNeeds(), replace(SITE, status="test"), "site_test_only"),
    ("test site, test", TaskNeeds(label="test"), replace(SITE, status="test"), ""),
    ("online site, test", TaskNeeds(label="test"), SITE, ""),
    ("bound elsewhere", TaskNeeds(preassigned_site="SITE_B"), SITE, "not_preassigned"),
    ("excluded", TaskNeeds(excluded_sites=("SITE_A",)), SITE, "excluded"),
    ("excluded by pattern", TaskNeeds(excluded_sites=("SITE_*",)), SITE, "excluded"),
    ("excluded wins over included", TaskNeeds(included_sites=("*",), excluded_sites=("*_A",)), SITE, "excluded"),
    ("included", TaskNeeds(included_sites=("SITE_B", "SITE_A")), SITE, ""),
    ("not included", TaskNeeds(included_sites=("SITE_B",)), SITE, "not_included"),
    ("8 cores on 4", TaskNeeds(cores=8), replace(SITE, cores=4), "too_few_cores"),
    ("8 cores on 8", TaskNeeds(cores=8), replace(SITE, cores=8), ""),
    ("8 cores on any", TaskNeeds(cores=8), replace(SITE, cores=0), ""),
    ("8 cores on -1", TaskNeeds(cores=8), replace(SITE, cores=-1), ""),
    ("1 core on 8", TaskNeeds(cores=1), replace(SITE, cores=8), "multi_core_only"),
    ("1 core on up to 8", TaskNeeds(cores=1), replace(SITE, cores=8, capability="ucore"), ""),
    ("any cores on 8", TaskNeeds(cores=0), replace(SITE, cores=8), ""),
    ("no cores stated", TaskNeeds(cores=None), replace(SITE, cores=8), ""),
    ("8 cores on 4, bound", TaskNeeds(cores=8, preassigned_site="SITE_A"), replace(SITE, cores=4), "too_few_cores"),
    ("memory equal", TaskNeeds(memory_mb=2000), replace(SITE, max_memory_mb=2000), ""),
    ("memory too low", TaskNeeds(memory_mb=2001), replace(SITE, max_memory_mb=2000), "low_memory"),
    ("memory too high", TaskNeeds(memory_mb=1999), replace(SITE, min_memory_mb=2000), "high_memory"),
    ("memory no limit", TaskNeeds(memory_mb=900_000), SITE, ""),
    (
        "memory, bound",
        TaskNeeds(memory_mb=9000, preassigned_site="SITE_A"),
        replace(SITE, max_memory_mb=10),
        "low_memory",
    ),
    (
        "memory per core uses the site's cores",
        TaskNeeds(cores=0, memory_mb=2000, memory_per_core=True, base_memory_mb=1),
        replace(SITE, cores=8, max_memory_mb=16000),
        "low_memory",
    ),
    (
        "memory per core uses the task's cores where slots are cut to size",
        TaskNeeds(cores=2, memory_mb=2000, memory_per_core=True),
        replace(SITE, cores=8, max_memory_mb=4000, capability="ucore"),
        "",
    ),
    ("time equal", TaskNeeds(walltime_s=3600), replace(SITE, max_walltime_s=3600), ""),
    ("time too long", TaskNeeds(walltime_s=3601), replace(SITE, max_walltime_s=3600), "short_walltime"),
    ("time too short", TaskNeeds(walltime_s=59), replace(SITE, min_walltime_s=60), "long_walltime"),
    ("time not known", TaskNeeds(), replace(SITE, max_walltime_s=10, min_walltime_s=5), ""),
    (
        "time from CPU time and power: 36000 / (2 x 10 x 0.9) = 2000 s",
        TaskNeeds(cores=2, cpu_hs06s=36_000),
        replace(SITE, core_power=10.0, max_walltime_s=1999),
        "short_walltime",
    ),
    ("disk equal", TaskNeeds(disk_mb=500), replace(SITE, work_dir_mb=500), ""),
    ("disk", TaskNeeds(disk_mb=501), replace(SITE, work_dir_mb=500), "scratch_disk"),
    ("queue below the floor", TaskNeeds(), replace(SITE, queued=10, defined=9), ""),
    ("queue at the floor", TaskNeeds(), replace(SITE, queued=10, defined=10), "queue_full"),
    ("queue below twice running", TaskNeeds(), replace(SITE, running=50, queued=99), ""),
    ("queue at twice running", TaskNeeds(), replace(SITE, running=50, queued=100), "queue_full"),
]


@pytest.mark.parametrize(("needs", "site", "code"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules(needs: TaskNeeds, site: SiteView, code: str) -> None:
    verdict = generic.broker(needs, [site])
    assert [skip.code for skip in verdict.skipped] == ([code] if code else [])
    assert verdict.code == code


def test_the_detail_has_the_numbers() -> None:
    needs = TaskNeeds(cores=0, memory_mb=3900, memory_per_core=True, base_memory_mb=100)
    (skip,) = generic.broker(needs, [replace(SITE, cores=2, max_memory_mb=4000)]).skipped
    assert (skip.code, skip.detail) == (
        "low_memory",
        "needs 7900 MB, the site gives 4000 MB (3900 MB x 2 cores + 100 MB)",
    )
    assert skip.gap == pytest.approx(3900 / 7900)


def test_the_floor_of_the_queue_can_be_changed() -> None:
    site = replace(SITE, queued=20)
    assert generic.broker(TaskNeeds(), [site], generic.rules(min_queue=21)).chosen
    assert not generic.broker(TaskNeeds(), [site], generic.rules(min_queue=20)).chosen


@pytest.mark.parametrize(
    ("running", "users", "has", "room"),
    [
        (0, 1, 0, 20),
        (0, 2, 0, 10),
        (0, 2, 9, 1),
        (0, 2, 10, 0),
        (0, 2, 19, 0),
        (0, 3, 0, 7),
        (0, 1000, 4, 1),
        (0, 1000, 5, 0),
        (50, 2, 40, 10),
        (50, 4, 25, 0),
    ],
)
def test_places_in_a_queue_are_divided_among_the_users_who_want_them(
    running: int, users: int, has: int, room: int
) -> None:
    site, queue_users = replace(SITE, running=running, queued=has), QueueUsers(users, {SITE.name: has})
    verdict = generic.broker(TaskNeeds(user="ada"), [site], queue_users=queue_users)
    assert (queue_users.room_at(site), [skip.code for skip in verdict.skipped]) == (
        room,
        [] if room else ["user_queue_long"],
    )


def test_few_places_are_not_divided_further() -> None:
    assert [part_of(3, 2), part_of(4, 100), part_of(100, 100)] == [3, 4, 5]


@pytest.mark.parametrize(
    ("running", "queued", "defined", "weight"), [(20, 10, 4, 0.28), (0, 0, 0, 1.0), (9, 4, 0, 2.0)]
)
def test_weight(running: int, queued: int, defined: int, weight: float) -> None:
    site = replace(SITE, running=running, queued=queued, defined=defined)
    assert generic.weigh(site).weight == pytest.approx(weight)


def test_best_first_and_ties_by_name() -> None:
    sites = [SiteView("C"), SiteView("B"), SiteView("A", queued=3), SiteView("D", running=5)]
    assert [choice.site for choice in generic.broker(TaskNeeds(), sites).chosen] == ["D", "B", "C", "A"]


def test_a_skip_with_an_unregistered_code_raises() -> None:
    with pytest.raises(refusals.UnknownRefusalError):
        Skip("SITE_A", "just_because", "no reason")


def test_work_goes_where_pilots_ask_if_it_can() -> None:
    sites = [SiteView("A", silent_s=540.0, queued=2), SiteView("B", queued=3)]
    verdict = generic.broker(TaskNeeds(), sites)
    assert [choice.site for choice in verdict.chosen] == ["B"]
    (skip,) = verdict.skipped
    assert (skip.site, skip.code, skip.detail) == (
        "A",
        "pilots_stopped",
        "for 9 min, no pilot has asked for the jobs that wait there",
    )
    alone = generic.broker(TaskNeeds(), [SiteView("A", silent_s=540.0, queued=2), SiteView("B", status="offline")])
    assert [choice.site for choice in alone.chosen] == ["A"], "better late than nowhere"


@pytest.mark.parametrize(
    ("quiet_s", "said"),
    [(660.0, "for 11 min"), (7 * 86_400.0, "for 168 h"), (7199.0, "for 120 min"), (7200.0, "for 2 h")],
)
def test_a_queue_whose_pilots_have_ended_is_chosen_last_whether_jobs_wait_there_or_not(
    quiet_s: float, said: str
) -> None:
    ended = SiteView("A", quiet_s=quiet_s, running=9)
    verdict = generic.broker(TaskNeeds(used_sites=("A",)), [ended, SiteView("B", queued=19)])
    assert [choice.site for choice in verdict.chosen] == ["B"], "as long as it takes a job"
    (skip,) = verdict.skipped
    assert (skip.site, skip.code, skip.detail) == ("A", "pilots_stopped", f"no pilot has asked for a job there {said}")
    assert generic.broker(TaskNeeds(), [ended, SiteView("B")]).sentence() == verdict.sentence()
    for other in (SiteView("B", queued=20), SiteView("B", status="offline"), SiteView("B", quiet_s=300.0)):
        assert "A" in [choice.site for choice in generic.broker(TaskNeeds(), [ended, other]).chosen]
    switched = replace(ended, switches={"allow_no_pilot": ""})
    assert [choice.site for choice in generic.broker(TaskNeeds(), [switched, SiteView("B")]).chosen] == ["A", "B"]


def test_of_queues_without_pilots_those_where_no_jobs_wait_come_first() -> None:
    sites = [SiteView("A", quiet_s=540.0, silent_s=540.0, queued=2), SiteView("B", quiet_s=540.0)]
    assert [choice.site for choice in generic.broker(TaskNeeds(), sites).chosen] == ["B"]


def test_work_that_was_taken_back_goes_elsewhere_if_it_can() -> None:
    sites = [SiteView("A", running=9), SiteView("B"), SiteView("C", status="offline")]
    verdict = generic.broker(TaskNeeds(avoided_sites=("A",)), sites)
    assert [choice.site for choice in verdict.chosen] == ["B"]
    assert {skip.site: skip.code for skip in verdict.skipped} == {"A": "taken_back", "C": "site_offline"}
    alone = generic.broker(TaskNeeds(avoided_sites=("A", "B")), sites)
    assert [choice.site for choice in alone.chosen] == ["A", "B"]


HERE = replace(SITE, inputs=("SE",), outputs=("SE",))
BARE = replace(SITE, inputs=(), outputs=("SE",))
"""A storage that nobody may read is no input of its queue."""
AT_SE = InputData("lab.in", 3, 30.0, is_primary=True, replicas={"SE": Replica(3, 30.0)})
AT_BOTH = replace(AT_SE, replicas={"SE": Replica(3, 30.0), "OTHER": Replica(3, 30.0)})
PART = replace(AT_SE, replicas={"SE": Replica(3, 30.0), "OTHER": Replica(1, 10.0, complete=False)})
READ_OFF = dict.fromkeys(("read_lan", "read_wan"), "OFF")
WRITE_OFF = dict.fromkeys(("write_lan", "write_wan"), "OFF")
STORAGE: Sequence[tuple[str, TaskNeeds, SiteView, dict[str, Any], str, str]] = [
    ("all is well", TaskNeeds(inputs=(AT_SE,), outputs=("SE",)), HERE, {}, "", ""),
    ("not described", TaskNeeds(inputs=(AT_SE,), outputs=("GONE",)), replace(SITE, outputs=("GONE",)), {}, "", ""),
    ("reading is off and nothing is read", TaskNeeds(), BARE, {"states": READ_OFF}, "", ""),
    (
        "reading is off",
        TaskNeeds(inputs=(AT_SE,)),
        BARE,
        {"states": READ_OFF},
        "input_not_readable",
        "(read_lan) is blacklisted",
    ),
    (
        "local reading is off",
        TaskNeeds(inputs=(AT_SE,)),
        HERE,
        {"states": {"read_lan": "OFF"}},
        "input_not_readable",
        "at SE",
    ),
    ("local reading is off for others", TaskNeeds(inputs=(AT_SE,)), SITE, {"states": {"read_lan": "OFF"}}, "", ""),
    ("it sends nothing", TaskNeeds(inputs=(AT_SE,)), HERE, {"states": {"read_wan": "OFF"}}, "", ""),
    (
        "it sends nothing to others",
        TaskNeeds(inputs=(AT_SE,)),
        SITE,
        {"states": {"read_wan": "OFF"}},
        "source_not_sending",
        "the input lab.in is only at SE, where reading from outside (read_wan) is blacklisted",
    ),
    ("another has it", TaskNeeds(inputs=(AT_BOTH,)), HERE, {"states": READ_OFF}, "", ""),
    ("another has a part", TaskNeeds(inputs=(PART,)), HERE, {"states": READ_OFF}, "input_not_readable", "at SE"),
    (
        "writing is off",
        TaskNeeds(),
        HERE,
        {"states": WRITE_OFF},
        "output_not_writable",
        "(write_lan) is blacklisted at SE",
    ),
    ("writing is off elsewhere", TaskNeeds(), SITE, {"states": WRITE_OFF}, "", ""),
    (
        "outputs go where writing is off",
        TaskNeeds(outputs=("SE",)),
        SITE,
        {"states": WRITE_OFF},
        "output_not_writable",
        "writing from outside (write_wan) is blacklisted at SE",
    ),
    ("outputs stay where nothing comes in", TaskNeeds(outputs=("SE",)), HERE, {"states": {"write_wan": "OFF"}}, "", ""),
    (
        "full",
        TaskNeeds(),
        HERE,
        {"space_free_gb": 0.0},
        "storage_full",
        "needs 200 GB of usable space, there are 0 GB at SE",
    ),
    (
        "outputs go where it is full",
        TaskNeeds(outputs=("SE",)),
        SITE,
        {"space_free_gb": 199.0},
        "storage_full",
        "at SE",
    ),
    (
        "outputs without a destination, at a queue without storage, go where it is full",
        TaskNeeds(unplaced_outputs="SE"),
        SITE,
        {"space_free_gb": 199.0},
        "storage_full",
        "at SE, where outputs of the task go",
    ),
    (
        "outputs without a destination go where the queue writes",
        TaskNeeds(unplaced_outputs="SE"),
        replace(SITE, outputs=("OTHER",)),
        {"space_free_gb": 0.0},
        "",
        "",
    ),
    ("enough space", TaskNeeds(outputs=("SE",)), HERE, {"space_free_gb": 200.0}, "", ""),
    (
        "space that has to stay free",
        TaskNeeds(),
        HERE,
        {"space_free_gb": 300.0, "space_min_free_gb": 101.0},
        "storage_full",
        "needs 200 GB of usable space, there are 199 GB at SE",
    ),
    (
        "the storage of analysis is full",
        TaskNeeds(),
        replace(SITE, outputs=("OTHER",), analysis_outputs=("SE",)),
        {"space_free_gb": 0.0},
        "storage_full",
        "at SE",
    ),
    (
        "and does not matter to production",
        TaskNeeds(label="managed"),
        replace(SITE, outputs=("OTHER",), analysis_outputs=("SE",)),
        {"space_free_gb": 0.0},
        "",
        "",
    ),
]


def with_storage(site: SiteView, endpoint: dict[str, Any]) -> Grid:
    endpoints = {"SE": Endpoint("SE", **endpoint), "OTHER": Endpoint("OTHER")}
    return Grid(sites={site.name: site}, endpoints=endpoints)


@pytest.mark.parametrize(
    ("needs", "site", "endpoint", "code", "says"), [row[1:] for row in STORAGE], ids=[row[0] for row in STORAGE]
)
def test_storage(needs: TaskNeeds, site: SiteView, endpoint: dict[str, Any], code: str, says: str) -> None:
    grid = with_storage(site, endpoint)
    verdict = generic.broker(needs, grid)
    assert [skip.code for skip in verdict.skipped] == ([code] if code else [])
    assert all(says in skip.detail for skip in verdict.skipped)
    assert (generic.refusal(needs, grid, site) is None) is bool(verdict.chosen)


@pytest.mark.parametrize("row", [row for row in STORAGE if row[4]], ids=lambda row: row[0])
def test_advice_on_storage_names_it_and_helps(row: Any) -> None:
    _, needs, site, endpoint, code, _ = row
    grid = with_storage(site, endpoint)
    found = decide(needs, grid, DEFAULTS)
    assert found.code == code and found.blocked is not None
    advice = [one.what for one in helping(Conditions(needs, grid, DEFAULTS), found.blocked, decide)]
    wanted = "Have space freed at SE" if code == "storage_full" else "Have the blacklisting of SE lifted"
    assert wanted in advice


def test_how_much_space_a_storage_must_have_left_is_configured() -> None:
    grid, least = (
        with_storage(HERE, {"space_free_gb": 20.0}),
        Row("jedi", "jobbroker", "STORAGE_MIN_FREE_SIZE", "10", "float"),
    )
    assert decide(TaskNeeds(), grid, DEFAULTS).code == "storage_full"
    assert decide(TaskNeeds(), grid, DEFAULTS.having(least)).chosen


NOTHING: dict[str, Any] = {}
ANY: dict[str, Any] = {"releases": ("ANY",)}
HAS: dict[str, Any] = {
    "releases": ("AUTO",),
    "gpus": (GpuRow("nvidia", "A100"),),
    "software": {
        "containers": ["/cvmfs/images"],
        "cmtconfigs": ["x86_64-el9-gcc13-opt"],
        "tags": [{"cmtconfig": "x86_64-el9-gcc13-opt", "project": "Athena", "release": "24.0.1"}],
        "architectures": [
            {"arch": ["x86_64"], "type": "cpu", "vendor": ["intel"]},
            {"type": "gpu", "vendor": ["nvidia"], "model": ["A100"]},
        ],
    },
}
PLATFORM = "x86_64-el9-gcc13-opt"
RELEASE = {"trans_home": "Athena-24.0.1", "architecture": PLATFORM}
SOFTWARE: Sequence[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nothing is asked", {}, NOTHING, ""),
    ("prun without a release", {"trans_home": "AnalysisTransforms", "architecture": PLATFORM}, NOTHING, ""),
    ("only a platform", {"architecture": PLATFORM}, NOTHING, ""),
    ("a release, nothing published", RELEASE, NOTHING, "no_release"),
    ("a release, any", RELEASE, ANY, ""),
    ("a release that is there", RELEASE, HAS, ""),
    ("another release", {**RELEASE, "trans_home": "Athena-24.0.2"}, HAS, "no_release"),
    ("of analysis", {**RELEASE, "trans_home": "AnalysisTransforms-Athena_24.0.1"}, HAS, ""),
    ("another of analysis", {**RELEASE, "trans_home": "AnalysisTransforms-Athena_24.0.2"}, HAS, "no_release"),
    ("a container that is there", {"container": "/cvmfs/images/a"}, HAS, ""),
    ("another container", {"container": "docker://a"}, HAS, "no_container"),
    ("a container, any", {"container": "docker://a"}, ANY, ""),
    ("a GPU that is there", {"architecture": "&nvidia-A100"}, HAS, ""),
    ("another GPU", {"architecture": "&nvidia-H100"}, HAS, "no_gpu"),
    ("a GPU, any software", {"architecture": f"{PLATFORM}&nvidia"}, ANY, "no_gpu"),
    ("a CPU that is there", {"architecture": "#x86_64-intel"}, HAS, ""),
    ("another CPU", {"architecture": "#x86_64-amd"}, HAS, "no_cpu"),
    ("a CPU, any software", {"architecture": "#aarch64"}, ANY, "no_cpu"),
    ("no architecture", {"architecture": "'{\"gpu_spec\": {}}'"}, NOTHING, "bad_architecture"),
]


@pytest.mark.parametrize("bound", ["", "SITE_A"])
@pytest.mark.parametrize(("asks", "has", "code"), [row[1:] for row in SOFTWARE], ids=[row[0] for row in SOFTWARE])
def test_software_and_hardware_that_a_task_asks_for(
    asks: dict[str, Any], has: dict[str, Any], code: str, bound: str
) -> None:
    verdict = generic.broker(TaskNeeds(preassigned_site=bound, **asks), [replace(SITE, **has)])
    assert [skip.code for skip in verdict.skipped] == ([code] if code else [])


def test_each_reason_has_its_place_in_the_order_of_the_rules() -> None:
    order = order_of(GENERIC)
    made = {row[3] for row in RULES} | {row[4] for row in STORAGE} | {row[3] for row in SOFTWARE}
    assert sorted(made - {""} - set(order)) == []


def full_everywhere(queues: int) -> Grid:
    """Queues whose storages are full, as is the one to which outputs go. The last queue has no other."""
    names = [f"Q{number:02}" for number in range(queues)]
    sites = {
        name: replace(HERE, name=name, site=name, inputs=(f"{name}_SE",), outputs=(f"{name}_SE",)) for name in names
    }
    sites["Z"] = replace(HERE, name="Z", site="Z", inputs=("LOCAL_SE",), outputs=("LOCAL_SE",))
    endpoints = [*(f"{name}_SE" for name in names), "LOCAL_SE"]
    return Grid(sites=sites, endpoints={name: Endpoint(name, space_free_gb=5.0) for name in endpoints})


def test_a_change_that_helps_is_found_at_whichever_queue_and_told_once() -> None:
    needs, grid = TaskNeeds(outputs=("LOCAL_SE",)), full_everywhere(13)
    conditions, found = Conditions(needs, grid, DEFAULTS), decide(needs, grid, DEFAULTS)
    assert found.blocked is not None and found.code == "storage_full"
    told = search(conditions, found.blocked, decide)
    assert [one.sentence for one in told.remedies] == ["Have space freed at LOCAL_SE; then Z takes its jobs."]
    assert told.untried == 0
    few = search(conditions, found.blocked, decide, most_asked=0)
    assert (few.remedies, few.untried) == ((), 10), "it is said at how many sites nothing was tried"


def test_only_queues_with_a_change_that_was_not_tried_count_as_untried() -> None:
    grid = full_everywhere(6)
    grid = replace(
        grid, sites={**grid.sites, **{name: replace(grid.sites["Z"], name=name) for name in ("A", "ZA", "ZB")}}
    )
    needs = TaskNeeds(outputs=("LOCAL_SE",))
    found = decide(needs, grid, DEFAULTS)
    assert found.blocked is not None
    few = search(Conditions(needs, grid, DEFAULTS), found.blocked, decide, most_asked=0)
    # Tried: at A and three of the others. At Z, ZA and ZB the same would have to be done as at A.
    assert few.untried == 3


def test_one_change_for_several_queues_is_told_once() -> None:
    grid = full_everywhere(0)
    sites = {name: replace(grid.sites["Z"], name=name) for name in ("A", "B", "C", "D", "E")}
    grid = replace(grid, sites=sites)
    found = decide(TaskNeeds(), grid, DEFAULTS)
    assert found.blocked is not None
    told = [one.sentence for one in helping(Conditions(TaskNeeds(), grid, DEFAULTS), found.blocked, decide)]
    assert told == ["Have space freed at LOCAL_SE; then A, B, C and 2 more take its jobs."]


def test_why_a_storage_of_another_site_counts_is_said() -> None:
    grid = full_everywhere(1)
    roomy = {**grid.endpoints, "Q00_SE": Endpoint("Q00_SE", space_free_gb=9000.0)}
    verdict = generic.broker(TaskNeeds(outputs=("LOCAL_SE",)), replace(grid, endpoints=roomy))
    said = {skip.site: skip.detail for skip in verdict.skipped}
    assert said["Q00"] == "needs 200 GB of usable space, there are 5 GB at LOCAL_SE, where outputs of the task go"


def test_a_queue_that_was_stopped_earlier_is_tried_after_those_that_came_further() -> None:
    """What stands in the way of the last two cannot be had by one change; setting the first online can."""
    ready, small = {"outputs": (), "inputs": ()}, {"max_memory_mb": 10, "max_walltime_s": 10}
    sites = [replace(HERE, name=name, **ready, **small) for name in ("A", "B")]
    sites.append(replace(HERE, name="C", status="offline", **ready))
    grid, needs = Grid(sites={one.name: one for one in sites}), TaskNeeds(memory_mb=100, walltime_s=100)
    found = decide(needs, grid, DEFAULTS)
    assert found.blocked is not None and found.code != "site_offline"
    told = [one.sentence for one in helping(Conditions(needs, grid, DEFAULTS), found.blocked, decide)]
    assert "Have C set online; then C takes its jobs." in told
