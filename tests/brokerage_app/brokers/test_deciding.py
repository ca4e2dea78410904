"""What decides for a task that runs nowhere: its own sites and the gate that came furthest, with queues counted once."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from brokerage_app.advice.remedies import helping
from brokerage_app.advice.whatif import Conditions
from brokerage_app.brokers.choosing import ANALYSIS, GENERIC, PRODUCTION, decide
from brokerage_app.brokers.funnel import funnel, order_of
from brokerage_app.cases.generic_case import GenericCase
from brokerage_app.filters.candidates import elsewhere_first
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import Counts, SiteView
from brokerage_app.vocabulary.snapshot import Link
from brokerage_app.vocabulary.verdict import Verdict
from tests.brokerage_app.grids import grid, queue

FAR = tuple(queue(f"FAR_{n}", cores=1, min_memory_mb=16_000) for n in range(9))
NEEDS = TaskNeeds(cores=1, memory_mb=2000, share="MC", label="user", vo="lab")


def configured(broker: str) -> Any:
    return DEFAULTS.having(Row("jedi", "brokerage", "JOB_BROKER_user", broker, "str"))


def verdict(needs: TaskNeeds, *sites: SiteView, broker: str = PRODUCTION) -> Verdict:
    return decide(needs, grid(*sites, *FAR), configured(broker))


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
@pytest.mark.parametrize(
    ("needs", "code", "says"),
    [
        ({"included_sites": ("MINE",)}, "site_offline", "MINE, the only site that the task may use, was skipped: "),
        ({"included_sites": ("NONE",)}, "site_unknown", "NONE does not exist"),
        ({"included_sites": ("MINNE",)}, "site_unknown", "MINNE does not exist (did you mean MINE?)"),
        ({"included_sites": ("MI*",), "excluded_sites": ("MINE",)}, "excluded", "it wants MI* and excludes MINE."),
        (
            {"excluded_sites": ("MINE",)},
            "high_memory",
            "All 9 sites that the task may use were skipped: 9 high memory.",
        ),
        ({"cloud": "DE"}, "site_offline", "MINE, the only site that the task may use, was skipped"),
        ({"preassigned_site": "NONE"}, "site_unknown", "NONE does not exist"),
    ],
)
def test_only_sites_that_the_task_may_use_count(broker: str, needs: dict[str, Any], code: str, says: str) -> None:
    mine = queue("MINE", cores=1, status="offline", status_reason="moved to another hall", cloud="DE")
    found = verdict(replace(NEEDS, **needs), mine, broker=broker)
    assert (found.code, says in found.sentence()) == (code, True), found.sentence()
    assert ("(“moved to another hall”)" in found.sentence()) is (code == "site_offline")


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
@pytest.mark.parametrize("bound", [{"preassigned_site": "GONE"}, {"listed_sites": ("GONE", "LOST")}])
def test_work_that_is_bound_to_a_queue_that_was_deleted_goes_nowhere_else(broker: str, bound: dict[str, Any]) -> None:
    found = verdict(replace(NEEDS, **bound), queue("MINE", cores=1), broker=broker)
    if broker == GENERIC and "listed_sites" in bound:
        # It reads lists as included sites.
        found = verdict(replace(NEEDS, included_sites=("GONE", "LOST")), queue("MINE", cores=1), broker=broker)
    assert (found.code, found.chosen) == ("site_unknown", ()), found.sentence()
    assert "not exist" in found.sentence()


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
def test_a_queue_that_was_deleted_lately_has_no_far_fetched_namesake(broker: str) -> None:
    world = replace(grid(queue("NOREL_Q", cores=1)), gone={"GONE_Q": "was deleted 2026-11-22 19:42 UTC by demo"})
    found = decide(replace(NEEDS, preassigned_site="GONE_Q"), world, configured(broker))
    assert (found.code, found.sentence()) == ("site_unknown", "GONE_Q was deleted 2026-11-22 19:42 UTC by demo.")
    both = decide(replace(NEEDS, included_sites=("GONE_Q", "NOREL_QQ")), world, configured(broker))
    assert both.sentence() == (
        "GONE_Q was deleted 2026-11-22 19:42 UTC by demo; NOREL_QQ does not exist (did you mean NOREL_Q?)."
    )


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
def test_a_pattern_that_fits_no_queue_any_more_names_those_that_were_deleted(broker: str) -> None:
    gone = {f"GONE_{n}": f"was deleted 2026-11-22 19:4{n} UTC by demo" for n in (1, 2)}
    world = replace(
        grid(queue("NOREL_Q", cores=1)), gone={**gone, "OTHER_Q": "was deleted 2026-11-21 08:00 UTC by olga"}
    )
    found = decide(replace(NEEDS, included_sites=("GONE_*",)), world, configured(broker))
    assert (found.code, found.sentence()) == (
        "site_unknown",
        "GONE_* matches no queue any more: GONE_1 was deleted 2026-11-22 19:41 UTC by demo, "
        "GONE_2 was deleted 2026-11-22 19:42 UTC by demo.",
    )
    never = decide(replace(NEEDS, included_sites=("NEVER_*", "NOREL_QQ")), world, configured(broker))
    assert never.sentence() == "NEVER_* matches no queue; NOREL_QQ does not exist (did you mean NOREL_Q?)."
    offline = replace(world, sites={"NOREL_Q": queue("NOREL_Q", cores=1, status="offline")})
    one_left = decide(replace(NEEDS, included_sites=("GONE_1*", "NOREL_Q")), offline, configured(broker))
    assert one_left.code == "site_offline" and one_left.sentence().endswith(
        " GONE_1* matches no queue any more: GONE_1 was deleted 2026-11-22 19:41 UTC by demo."
    )


FULL = {"MC": {"SCORE": Counts(activated=100), "MCORE": Counts(activated=100)}}


@pytest.mark.parametrize(
    ("broker", "needs", "code", "says"),
    [
        (
            ANALYSIS,
            {"preassigned_site": "MINE"},
            "queue_full_of_type",
            "100 jobs are queued, the limit is 40 with 0 running",
        ),
        (
            ANALYSIS,
            {"listed_sites": ("MINE",)},
            "queue_full_of_type",
            "100 jobs are queued, the limit is 40 with 0 running",
        ),
        (
            ANALYSIS,
            {"preassigned_site": "MINE", "merging": True},
            "queue_full_of_type",
            "100 jobs are queued, the limit is 40",
        ),
        (
            PRODUCTION,
            {"included_sites": ("MINE",), "priority": 1000},
            "queue_full",
            "200 jobs are queued, the limit is 20",
        ),
    ],
)
def test_a_queue_that_takes_no_further_job_is_not_chosen_even_for_work_that_is_bound_to_it(
    broker: str, needs: dict[str, Any], code: str, says: str
) -> None:
    """Chosen it would get no job, turn after turn, and nothing would say why."""
    mine = queue("MINE", cores=1, jobs=FULL)
    wants = replace(NEEDS, resource_type="SCORE", **needs)
    found = decide(wants, grid(mine, *FAR), configured(broker))
    assert (found.code, found.chosen) == (code, ()), found.sentence()
    assert found.sentence().startswith(f"MINE, the only site that the task may use, was skipped: {says}"), (
        found.sentence()
    )
    fewer = {"MC": {"SCORE": Counts(activated=19)}}
    assert [one.site for one in decide(wants, grid(replace(mine, jobs=fewer), *FAR), configured(broker)).chosen] == [
        "MINE"
    ]


def test_a_queue_with_as_many_jobs_as_it_may_have_is_full_for_all() -> None:
    exactly = queue("MINE", cores=1, jobs={"MC": {"SCORE": Counts(activated=40)}})
    found = decide(replace(NEEDS, resource_type="SCORE"), grid(exactly, *FAR), configured(ANALYSIS))
    assert not found.chosen
    assert {skip.site: skip.detail for skip in found.skipped}["MINE"] == "40 jobs are queued, the limit is 40"


def test_each_status_is_counted_by_its_own_name_and_its_end_is_said() -> None:
    until = datetime(2026, 11, 23, 8, tzinfo=UTC)
    out = {"OFF": "offline", "HELD": "paused", "SPARE": "standby", "SHY": "test"}
    sites = [queue(name, cores=1, status=status, status_reason="new switches.") for name, status in out.items()]
    found = decide(NEEDS, grid(*sites), configured(GENERIC))
    assert "1 site offline, 1 site paused, 1 site standby, 1 site test only" in found.sentence()
    said = {
        site.name: decide(NEEDS, grid(replace(site, status_until=until)), configured(GENERIC)).sentence()
        for site in sites
    }
    end = "until 2026-11-23 08:00 UTC"
    assert f"The only site, OFF, was skipped: the site's status is offline {end} (“new switches”)." in said["OFF"]
    assert f"The only site, HELD, was skipped: the site's status is paused {end} (“new switches”)." in said["HELD"]
    assert (
        f"SHY, was skipped: the site takes only jobs with the label test {end}, the task has user (“new switches”)"
        in said["SHY"]
    )


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
def test_the_queue_that_would_do_but_for_its_failing_builds_tells_why(broker: str) -> None:
    needs, mine = replace(NEEDS, failing_builds={"MINE": 3}), queue("MINE", cores=1)
    found = verdict(needs, mine, broker=broker)
    assert (found.code, found.sentence()) == (
        "build_fails_there",
        "All 10 sites were skipped: 9 high memory, 1 build fails there. Last was MINE: 3 builds of the task failed there.",
    )
    assert found.blocked is not None
    told = helping(Conditions(needs, grid(mine, *FAR), configured(broker)), found.blocked, decide)
    assert not any("memory at least" in one.sentence for one in told), told
    # A queue that is full for the moment is waited for, and one that is offline says so.
    full = queue("FULL", cores=1, jobs=FULL, queued=200)
    assert verdict(needs, mine, full, broker=broker).code == "queue_full"
    assert verdict(needs, replace(mine, status="offline"), broker=broker).queues["MINE"].code == "site_offline"


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
def test_a_queue_that_is_full_of_jobs_of_the_tasks_resource_queue_is_one_to_wait_for(broker: str) -> None:
    many = {"SCORE": Counts(activated=100)}
    needs = replace(NEEDS, work_queue="Special", resource_queue=True)
    world = grid(queue("MINE", cores=1, jobs={"MC": many}, resource_queue_jobs={"Special": many}))
    found = decide(needs, world, configured(broker))
    assert found.code == "queue_full" and found.blocked is not None
    told = helping(Conditions(needs, world, configured(broker)), found.blocked, decide)
    assert [one.sentence for one in told] == [
        "Wait until jobs that are queued at MINE have started; then MINE takes its jobs."
    ]


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
@pytest.mark.parametrize("seen", [{"pilots_3h": 7}, {"pilots_3h": None, "last_start_s": 60.0}])
def test_of_one_gate_the_most_frequent_reason_is_told_and_queues_with_pilots_come_first(
    broker: str, seen: dict[str, Any]
) -> None:
    """Every queue is offline, but one that is paused: nothing runs where no pilot has ever come."""
    never = {"pilots_3h": None if seen["pilots_3h"] is None else 0, "status": "offline"}
    others = [queue(name, cores=1, **never) for name in ("BLK_1", "BLK_2", "CAP_1", "CAP_2")]
    local = queue("LOCAL", cores=1, **seen, status="offline")
    paused = queue("PAU_1", cores=1, **{**never, "status": "paused"})
    world, configuration = grid(*others, paused, local), configured(broker)
    found = decide(NEEDS, world, configuration)
    assert (found.code, found.sentence()) == (
        "site_offline",
        "All 6 sites were skipped: 5 sites offline, 1 site paused. Last was LOCAL: the site's status is offline.",
    )
    assert found.blocked is not None
    told = helping(Conditions(NEEDS, world, configuration), found.blocked, decide)
    assert told[0].sentence == "Have LOCAL set online; then LOCAL takes its jobs."
    assert not any("PAU_1" in one.sentence for one in told)


EXPRESS = replace(NEEDS, priority=1000, nucleus="N", included_sites=("MINE",))


def test_work_that_is_express_by_its_priority_says_so_and_a_lower_one_is_advised_where_it_helps() -> None:
    def told(needs: TaskNeeds, **more: Any) -> tuple[Verdict, list[tuple[str, str]]]:
        world = replace(grid(queue("MINE", cores=1, **more)), links={"S_MINE": {"N": Link(closeness=11)}})
        found = decide(needs, world, configured(PRODUCTION))
        assert found.blocked is not None
        helps = helping(Conditions(needs, world, configured(PRODUCTION)), found.blocked, decide)
        return found, [(one.sentence, one.who) for one in helps]

    found, advice = told(EXPRESS)
    assert found.code == "slow_network"
    assert found.sentence().endswith("; the task is express work because of its priority of 1000 (1000 or more).")
    assert advice == [
        (
            "Have an operator lower the priority of the task below 1000 (currentPriority; now 1000), so that it is not express "
            "work; then MINE takes its jobs.",
            "production",
        ),
    ]
    # Behind another objection comes that of the link: one change alone helps as little as the other.
    found, advice = told(EXPRESS, status="offline")
    assert found.code == "site_offline" and advice == [
        (
            "Have MINE set online, and have an operator lower the priority of the task below 1000 (currentPriority; now 1000), "
            "so that it is not express work; then MINE takes its jobs.",
            "shifter",
        ),
    ]
    # Where its cap on queued jobs is reached a lower priority is no help; nor for work that is urgent for another reason.
    assert told(EXPRESS, counts=Counts(running=1, activated=90))[1] == []
    found, advice = told(replace(EXPRESS, priority=10, processing_type="urgent"))
    assert found.sentence().endswith("; the task is express work because of its processingType.") and advice == []


@pytest.mark.parametrize(
    ("fixed", "advice"),
    [
        ({"walltime_s": 36_000}, "Lower the walltime of the task from 36000 to 600 s, if its jobs need no more"),
        (
            {"walltime_s": 36_000, "events_a_job": 100},
            "Lower the walltime of the task from 36000 to 600 s, if its jobs need no more",
        ),
        (
            {"cpu_hs06s": 54_000.0, "files_a_job": 1, "events_a_job": 0},
            "Lower the cpuTime of the task to 10 % of what it is, if its jobs need no more",
        ),
        ({"cpu_hs06s": 54_000.0, "files_a_job": 25}, "Make jobs of 2 files (nFilesPerJob; now 25)"),
        (
            {"cpu_hs06s": 54_000.0, "events_a_job": 1},
            "Lower the cpuTime of the task to 10 % of what it is, if its jobs need no more",
        ),
        (
            {"cpu_hs06s": 54_000.0, "events_a_job": 1000},
            "Kill the task and submit it again, under another name and with 100 events a job (nEventsPerJob; now 1000)",
        ),
        (
            {"walltime_s_per_mb": 60.0, "effective_mb": 100.0, "atom_mb": 100.0, "files_a_job": 100},
            "Make jobs of 10 files (nFilesPerJob; now 100)",
        ),
    ],
)
def test_shorter_jobs_are_advised_only_as_they_can_be_had(fixed: dict[str, Any], advice: str) -> None:
    needs, configuration = replace(NEEDS, included_sites=("SHORT",), **fixed), configured(PRODUCTION)
    world = grid(queue("SHORT", cores=1, max_walltime_s=600))
    found = decide(needs, world, configuration)
    assert found.code == "short_walltime" and found.blocked is not None
    told = [one.what for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]
    assert told[0] == advice and not any("present length" in one for one in told), told


@pytest.mark.parametrize("bound", [{"preassigned_site": "SHORT"}, {}])
@pytest.mark.parametrize(
    ("of_size", "advice"),
    [
        ({"events_a_job": 1}, "Lower the cpuTime of the task to 67 % of what it is, if its jobs need no more"),
        ({"files_a_job": 5}, "Make jobs of 3 files (nFilesPerJob; now 5)"),
    ],
)
def test_the_time_that_each_job_takes_whatever_its_size_does_not_shrink_with_it(
    bound: dict[str, Any], of_size: dict[str, int], advice: str
) -> None:
    """600 of 5045 s: the limit is 71 % of the whole, and 67 % of what is left."""
    needs = TaskNeeds(vo="local", label="user", cpu_hs06s=40_000.0, base_walltime_s=600, **bound, **of_size)
    limits = {"SHORT": 3600, "SHORTER": 600}
    sites = [SiteView(name, max_walltime_s=limit, core_power=10.0) for name, limit in limits.items()]
    world, configuration = grid(*sites), configured(GENERIC)
    found = decide(needs, world, configuration)
    assert found.blocked is not None and "needs 5045 s, the site allows 3600 s" in found.blocked.sentence
    told = [one.what for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]
    assert told[0] == advice and len([one for one in told if "cpuTime" in one]) <= 1


@pytest.mark.parametrize(("times", "percent"), [(40.0, "2"), (400.0, "0.25"), (400_000.0, "0.00025")])
def test_a_cpu_time_that_is_far_too_large_is_to_be_lowered_to_what_fits(times: float, percent: str) -> None:
    """The site gives 0.9 x 10 x 10 800 HS06 seconds, less than 1 % of what was asked."""
    needs = TaskNeeds(vo="local", label="user", cpu_hs06s=97_200 * times, base_walltime_s=600)
    world, configuration = grid(SiteView("SHORT", max_walltime_s=11_400, core_power=10.0)), configured(GENERIC)
    found = decide(needs, world, configuration)
    assert found.blocked is not None and found.code == "short_walltime"
    told = [one.what for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]
    assert told[0] == f"Lower the cpuTime of the task to {percent} % of what it is, if its jobs need no more"


def test_the_last_gate_decides_and_not_the_most_frequent_reason() -> None:
    short = queue("SHORT", cores=1, max_walltime_s=60)
    found = verdict(replace(NEEDS, walltime_s=3600), short)
    assert found.code == codes.SHORT_WALLTIME, found.sentence()
    assert found.sentence() == (
        "All 10 sites were skipped: 9 high memory, 1 short walltime. "
        "Last was SHORT: needs 3600, the site gives 60 core seconds in 60 s."
    )


def parts(name: str, **more: Any) -> tuple[SiteView, ...]:
    return (
        queue(name, is_parent=True, capability="ucore"),
        queue(f"{name}/SCORE", cores=1, parent=name, capability="ucore", **more),
        queue(f"{name}/MCORE", cores=8, parent=name, capability="ucore", **more),
    )


def test_variants_of_a_queue_for_job_sizes_are_one_site() -> None:
    found = verdict(
        replace(NEEDS, included_sites=("P*",)), *parts("P1", max_memory_mb=900), *parts("P2", max_memory_mb=99)
    )
    assert found.sentence() == (
        "All 2 sites that the task may use were skipped: 2 low memory. Last was P1: needs 1800 MB, the site gives 900 MB."
    )


def test_of_those_that_are_chosen_variants_are_one_site_too() -> None:
    found = verdict(NEEDS, *parts("P1"), *parts("P2", max_memory_mb=99))
    assert found.sentence() == "1 of 11 sites was chosen, P1/SCORE; skipped: 9 high memory, 1 low memory."


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
def test_of_a_queue_with_variants_the_one_that_would_do_but_for_its_pilots_tells_why(broker: str) -> None:
    found = verdict(NEEDS, *parts("P1", silent_s=600.0), queue("GOOD", cores=1), broker=broker)
    assert [choice.site for choice in found.chosen] == ["GOOD"]
    assert found.queues["P1"].code == codes.PILOTS_STOPPED
    assert "1 pilots stopped" in found.sentence(), found.sentence()


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS, GENERIC])
def test_sites_that_others_are_tried_before_are_left_out_behind_all_rules_and_before_weights(broker: str) -> None:
    sites = [queue("TOOK", cores=1), queue("SILENT", cores=1, silent_s=600.0), queue("GOOD", cores=1)]
    case = GenericCase(replace(NEEDS, avoided_sites=("TOOK",)), grid(*sites))
    left = [skip.code for skip in elsewhere_first(case, sites)[1]]
    order = order_of(broker)
    places = [order[code] for code in (codes.LOW_MEMORY, *left, codes.LOW_WEIGHT)]
    assert len(left) == 2 and places == sorted(places)
    many = {"high_memory": ["A", "B"], "pilots_stopped": ["C"], "low_weight": ["D"]}
    assert [(step.code, step.before, step.after) for step in funnel(broker, "job", 1, many)] == [
        ("high_memory", 5, 3),
        ("pilots_stopped", 3, 2),
        ("low_weight", 2, 1),
    ]


def test_memory_a_core_leaves_room_for_what_a_job_needs_besides() -> None:
    needs = replace(NEEDS, cores=8, memory_mb=3000, memory_per_core=True, base_memory_mb=1000, included_sites=("MINE",))
    configuration, world = configured(PRODUCTION), grid(queue("MINE", max_memory_mb=18_000))
    found = decide(needs, world, configuration)
    assert found.blocked is not None
    first, *_ = helping(Conditions(needs, world, configuration), found.blocked, decide)
    # 8 x 2375 MB and 1000 MB are 20 000 MB, of which nine tenths are asked.
    assert first.sentence == "Ask for 2375 MB of memory a core at most (ramCount; now 3000); then MINE takes its jobs."


def test_advice_that_leads_to_the_next_refusal_is_not_given() -> None:
    """Two things stand in the way: neither alone is advice, and other sites are, when they would do."""
    both = queue("BOTH", cores=1, max_memory_mb=900, max_walltime_s=60)
    needs = replace(NEEDS, walltime_s=3600, included_sites=("BOTH",))
    configuration = configured(PRODUCTION)

    def advice(*others: SiteView) -> list[str]:
        world = grid(both, *others)
        found = decide(needs, world, configuration)
        assert found.blocked is not None
        return [one.sentence for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]

    assert advice() == []
    assert advice(queue("ROOMY", cores=1)) == [
        "Reassign the task to a site other than BOTH; then ROOMY takes its jobs."
    ]


def test_advice_names_what_can_be_done_with_an_open_task() -> None:
    def advice(needs: TaskNeeds, broker: str, *sites: SiteView) -> list[tuple[str, str]]:
        world, configuration = grid(*sites), configured(broker)
        found = decide(needs, world, configuration)
        assert found.blocked is not None
        return [(one.what, one.who) for one in helping(Conditions(needs, world, configuration), found.blocked, decide)]

    free = queue("ROOMY", cores=1, cloud="US")
    off = queue("MINE", cores=1, status="offline", cloud="DE")
    assert ("Kill the task and run it again (incexec) with an excludedSite other than ROOMY", "user") in advice(
        replace(NEEDS, excluded_sites=("ROOMY",)), ANALYSIS, free, off
    )
    assert ("Reassign the task to a cloud other than DE", "production") in advice(
        replace(NEEDS, cloud="DE"), ANALYSIS, free, off
    )
    short = queue("SHORT", cores=1, max_walltime_s=3600)
    without = "walltime counts only together with cpuTime"
    for given, says in (
        ({}, "unmeasured jobs"),
        ({"walltime_s": 60}, without),
        ({"walltime_s_per_mb": 0.5}, without),
        ({"walltime_s": 60, "merging": True}, "unmeasured jobs"),
    ):
        told = decide(replace(NEEDS, walltime_known=False, **given), grid(short), configured(ANALYSIS)).sentence()
        assert says in told and "need 86400 s, the site allows 3600 s" in told, told
    unmeasured = replace(NEEDS, walltime_known=False, included_sites=("SHORT",))
    assert (
        "State how long the jobs run (cpuTime), if that is less than the 3600 s that SHORT allows",
        "user",
    ) in advice(unmeasured, ANALYSIS, short)


def test_advice_on_hardware_is_what_can_be_done_with_a_task_that_exists() -> None:
    needs = replace(NEEDS, architecture='{"gpu_spec": {"vendor": "nvidia"}}', included_sites=("MINE",))
    world, configuration = grid(queue("MINE", cores=1)), configured(ANALYSIS)
    found = decide(needs, world, configuration)
    assert found.blocked is not None and found.code == codes.NO_GPU, found.sentence()
    first, *_ = helping(Conditions(needs, world, configuration), found.blocked, decide)
    again = "Kill the task and submit it again, under another name and"
    assert first.what == f"{again} without asking for a GPU (architecture left empty)"


TAGS = "published in its software tags (architectures, an entry of the type gpu)"
UNREAD = f"{TAGS[:-1]}; they count only with AUTO among its releases)"
NODES = "entered at its worker nodes (Worker node GPUs in the administration)"
A100 = GpuRow("nvidia", "A100", 40_000)


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
@pytest.mark.parametrize(
    ("spec", "has", "lacks"),
    [
        ({"vendor": "nvidia"}, {}, f"{TAGS} and {NODES}"),
        ({"vendor": "nvidia"}, {"gpus": (A100,)}, TAGS),
        ({"vendor": "nvidia"}, {"software": {"architectures": [{"type": "gpu"}]}}, NODES),
        ({"vendor": "nvidia", "model": "A100|H100", "vram": ">=40000"}, {}, f"{TAGS} and {NODES}"),
        ({"vendor": "nvidia"}, {"gpus": (A100,), "releases": ("ANY",)}, UNREAD),
        ({"vendor": "nvidia"}, {"gpus": (A100,), "software": {"architectures": None}}, TAGS),
        ({"vendor": "nvidia", "version": "<12.0", "vram": ">40000"}, {}, f"{TAGS} and {NODES}"),
        ({"vendor": "nvidia", "driver_version": "!=550"}, {}, f"{TAGS} and {NODES}"),
        ({"vendor": "amd"}, {"gpus": (A100,), "software": {"architectures": [{"type": "gpu"}]}}, ""),
    ],
)
def test_of_the_two_places_of_gpus_those_are_named_that_lack_them(
    broker: str, spec: dict[str, str], has: dict[str, Any], lacks: str
) -> None:
    needs = replace(NEEDS, architecture=json.dumps({"gpu_spec": spec}), included_sites=("MINE",))
    world, configuration = grid(queue("MINE", cores=1, **has)), configured(broker)
    found = decide(needs, world, configuration)
    assert found.blocked is not None and found.code == codes.NO_GPU, found.sentence()
    told = [
        one for one in helping(Conditions(needs, world, configuration), found.blocked, decide) if "GPUs" in one.what
    ]
    expected = [f"If MINE has such GPUs, have them {lacks}; then MINE takes its jobs."] if lacks else []
    assert [one.sentence for one in told] == expected
    releases = [line for one in told for line in one.lines if ".releases=" in line]
    assert releases == (['site.MINE.releases=["ANY", "AUTO"]'] if "releases" in has else [])


@pytest.mark.parametrize("broker", [PRODUCTION, ANALYSIS])
def test_what_is_kept_of_a_decision_counts_queues(broker: str) -> None:
    """One reason a queue: that of the variant which came furthest, and what the task itself says where it rules one out."""
    needs = replace(NEEDS, excluded_sites=("P3",), memory_mb=16_000 * 10 // 9)
    small, roomy = parts("P1", max_memory_mb=900), parts("P2", max_memory_mb=90_000)
    found = verdict(
        needs, *small, *roomy, *parts("P3", max_memory_mb=90_000), queue("P4", max_walltime_s=1), broker=broker
    )
    kept = found.compact()
    named = [name for names in kept.values() for name in names]
    assert "P1" in kept["low_memory"] and kept["excluded"] == ["P3"]
    assert "P2" not in named and not any("/" in name for name in named) and len(named) == len(set(named))
    assert {choice[0]: choice[3] for choice in found.kept_choices() if len(choice) > 3} == {"P2/SCORE": "P2"}
    assert {skip[0]: skip[4] for skip in found.kept_skips() if len(skip) > 4}["P1/MCORE"] == "P1"
