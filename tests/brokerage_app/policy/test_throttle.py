from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.configuration import DEFAULTS, Configuration, Level, Row
from brokerage_app.policy.throttle import (
    Allowance,
    JobCounts,
    Levels,
    Limit,
    Situation,
    Standby,
    ThrottleLimits,
    bunch_and_limit,
    core_class,
    explain,
    limits_of,
    parse_standby,
    throttle,
    total_walltime_s,
    with_standby,
)
from jedisite import refusals


def seen(running: int = 0, not_running: int = 0, defined: int = 0, waiting: int = 0, **more: Any) -> Situation:
    jobs = JobCounts(running, not_running, defined, waiting)
    return replace(Situation("MC simul", jobs=Levels(jobs, jobs, jobs)), **more)


PLAIN = ThrottleLimits()
URGENT = {"waiting_priority": 900, "highest_priority": 800}


@pytest.mark.parametrize(
    ("situation", "limits", "limit", "passed", "most", "code"),
    [
        pytest.param(seen(1000, 700, 100), PLAIN, 2400, True, 300, "", id="H1"),
        pytest.param(seen(1000, 1900, 300), PLAIN, 2000, False, 0, "throttled_queued", id="H2"),
        pytest.param(seen(1000, 1900, 700, **URGENT), PLAIN, 2000, True, 250, "throttled_priority", id="H3"),
        pytest.param(seen(0, 2500), PLAIN, 2000, False, 0, "throttled_none_running", id="H4"),
        pytest.param(seen(0, 2500, walltime_s=40_000_000), PLAIN, 2000, True, 250, "", id="H4 short work"),
        pytest.param(seen(1000, 700, 100), ThrottleLimits(queue_limit=Limit(20_000)), 20_000, True, 1000, "", id="H5"),
        pytest.param(seen(1000, 700, 100), ThrottleLimits(queue_cap=Limit(2000)), 2400, True, 400, "", id="H6"),
        pytest.param(
            seen(6000, 3000, 100),
            ThrottleLimits(running_cap=Limit(5000)),
            2400,
            False,
            0,
            "throttled_running_cap",
            id="H7",
        ),
        pytest.param(
            seen(2000, 1000), ThrottleLimits(queue_cap=Limit(900)), 2400, False, 0, "throttled_queue_cap", id="H8"
        ),
        pytest.param(
            seen(9, 2),
            ThrottleLimits(queue_limit=Limit(2), queue_cap=Limit(2)),
            2,
            True,
            1,
            "",
            id="a fifth of a small cap",
        ),
        pytest.param(
            seen(0, 38, **URGENT),
            ThrottleLimits(queue_cap=Limit(2)),
            2000,
            True,
            1,
            "throttled_priority",
            id="urgent, small cap",
        ),
        pytest.param(seen(100, 50, 0, 1100), PLAIN, 2000, False, 0, "throttled_waiting", id="H9"),
        pytest.param(seen(1200, 1850, 100), PLAIN, 2200, True, 275, "", id="H10"),
        # Boundaries: every rule is strict.
        pytest.param(seen(1000, 1700, 300), PLAIN, 2000, True, 250, "", id="ratio 2 passes"),
        pytest.param(seen(900, 1700, 300), PLAIN, 2000, True, 250, "", id="as many as the limit pass"),
        pytest.param(seen(900, 1701, 300), PLAIN, 2000, False, 0, "throttled_queued", id="one more is too many"),
        pytest.param(seen(0, 2000), PLAIN, 2000, True, 250, "", id="none runs, as many as the limit"),
        pytest.param(seen(0, 2001, walltime_s=50_000_000), PLAIN, 2000, True, 250, "", id="just enough work"),
        pytest.param(
            seen(0, 2001, walltime_s=50_000_001), PLAIN, 2000, False, 0, "throttled_none_running", id="too much work"
        ),
        pytest.param(seen(5000, 0, 2400), PLAIN, 2400, True, 300, "", id="defined as the limit"),
        pytest.param(seen(5000, 0, 2401), PLAIN, 2400, False, 0, "throttled_defined", id="one defined too many"),
        pytest.param(seen(100, 50, 0, 1000), PLAIN, 2000, True, 250, "", id="waiting as two bunches"),
        pytest.param(seen(300, 50, 0, 1200), PLAIN, 2200, True, 275, "", id="waiting as four times the running"),
        pytest.param(seen(5000), ThrottleLimits(running_cap=Limit(5000)), 2400, True, 300, "", id="as many run as may"),
        pytest.param(
            seen(600, 400, 500),
            ThrottleLimits(queue_cap=Limit(900)),
            2400,
            True,
            180,
            "",
            id="as many queued as the cap",
        ),
        pytest.param(seen(1), ThrottleLimits(running_cap=Limit(0)), 2000, False, 0, "throttled_cap_zero", id="cap 0"),
        pytest.param(
            seen(0), ThrottleLimits(running_cap=Limit(0)), 2000, False, 0, "throttled_cap_zero", id="cap 0, none runs"
        ),
        pytest.param(
            seen(0), ThrottleLimits(queue_cap=Limit(0)), 2000, False, 0, "throttled_cap_zero", id="cap 0, none queued"
        ),
    ],
)
def test_allowance(
    situation: Situation, limits: ThrottleLimits, limit: int, passed: bool, most: int, code: str
) -> None:
    answer = throttle(situation, limits)
    assert bunch_and_limit(situation, limits)[1].value == limit
    assert (answer.passed, answer.max_jobs, answer.code) == (passed, most, code)


@pytest.mark.parametrize(
    ("situation", "limits", "lacks"),
    [
        pytest.param(seen(1000, 700, 100), PLAIN, True, id="H1"),
        pytest.param(seen(0, 2500, walltime_s=1), PLAIN, False, id="H4"),
        pytest.param(seen(1000, 700, 100), ThrottleLimits(queue_limit=Limit(20_000)), True, id="H5"),
        pytest.param(seen(1200, 1850, 100), PLAIN, True, id="H10, 1950 < 0.9 x 2200"),
        pytest.param(seen(1200, 1850, 130), PLAIN, False, id="1980 = 0.9 x 2200"),
        pytest.param(seen(5000, 2300), PLAIN, True, id="fewer queued than running"),
    ],
)
def test_a_queue_with_far_fewer_jobs_than_it_may_have_lacks_jobs(
    situation: Situation, limits: ThrottleLimits, lacks: bool
) -> None:
    assert throttle(situation, limits).lack_of_jobs is lacks


@pytest.mark.parametrize(
    ("more", "least"),
    [
        ({"waiting_priority": 900, "highest_priority": 899}, 900),
        ({"waiting_priority": 900, "highest_priority": 900, "not_running_highest": 499}, 900),
        ({"waiting_priority": 900, "highest_priority": 900, "not_running_highest": 500}, None),
        ({"waiting_priority": 899, "highest_priority": 900}, None),
        ({"waiting_priority": 100, "highest_priority": None}, 100),
        ({"waiting_priority": None, "highest_priority": 900}, None),
        ({"waiting_priority": 900, "highest_priority": 100, "label": "user"}, None),
    ],
)
def test_urgent_tasks_go_on_alone_when_the_others_are_throttled(more: dict[str, Any], least: int | None) -> None:
    answer = throttle(seen(1000, 1900, 700, **more))
    assert (answer.min_priority, answer.passed, answer.merge_only) == (least, least is not None, least is None)
    if least is not None:
        assert answer.refuses(least - 1)
        assert not answer.refuses(least)
        assert not answer.lack_of_jobs


def test_urgent_tasks_do_not_pass_the_cap_on_running_jobs() -> None:
    urgent = seen(6000, 100, waiting_priority=900, highest_priority=100)
    assert throttle(urgent, ThrottleLimits(running_cap=Limit(5000))).code == "throttled_running_cap"
    crowded = seen(6000, 20_000, waiting_priority=900, highest_priority=100)
    assert throttle(crowded, ThrottleLimits(running_cap=Limit(5000))).code == "throttled_running_cap"
    assert throttle(crowded, ThrottleLimits(queue_cap=Limit(5000))).min_priority == 900


def test_shares_that_are_not_throttled_get_any_number() -> None:
    answer = throttle(seen(0, 10**6, throttled=False), ThrottleLimits(running_cap=Limit(0)))
    assert (answer.passed, answer.max_jobs, answer.code) == (True, None, "")
    assert explain(answer) == ["Not throttled: jobs may be made without limit."]


def levels(resource_type: JobCounts, core_class: JobCounts, whole_queue: JobCounts) -> Levels:
    return Levels(resource_type, core_class, whole_queue)


@pytest.mark.parametrize(
    ("level", "code"), [(Level.RESOURCE, ""), (Level.CORES, ""), (Level.QUEUE, "throttled_queued")]
)
def test_a_limit_is_compared_with_the_jobs_of_the_level_at_which_it_was_found(level: Level, code: str) -> None:
    jobs = levels(JobCounts(100, 300), JobCounts(200, 900), JobCounts(1000, 1001))
    answer = throttle(Situation("MC", jobs=jobs), ThrottleLimits(queue_limit=Limit(1000, level)))
    assert answer.code == code


@pytest.mark.parametrize(("level", "stopped"), [(Level.RESOURCE, False), (Level.CORES, True), (Level.QUEUE, True)])
def test_caps_count_the_jobs_of_their_level(level: Level, stopped: bool) -> None:
    jobs = levels(JobCounts(10, 5), JobCounts(60, 60), JobCounts(70, 70))
    situation = Situation("MC", jobs=jobs)
    assert throttle(situation, ThrottleLimits(running_cap=Limit(50, level))).merge_only is stopped
    assert throttle(situation, ThrottleLimits(queue_cap=Limit(50, level))).merge_only is stopped


def test_event_service_is_throttled_as_a_whole_and_whatever_its_walltime() -> None:
    jobs = levels(JobCounts(0, 10), JobCounts(0, 20), JobCounts(0, 2500))
    some = Situation("eventservice", jobs=jobs, walltime_s=1)
    assert throttle(some).code == "throttled_none_running"
    assert throttle(replace(some, queue="MC")).passed


def test_bunches_of_prestaged_work_fill_what_is_left_below_the_limit() -> None:
    some = seen(10, 100)
    assert bunch_and_limit(some, PLAIN)[0] == 500
    assert bunch_and_limit(replace(some, queue="Heavy Ion"), PLAIN)[0] == 600
    assert bunch_and_limit(replace(some, queue="Heavy Ion"), ThrottleLimits(queue_limit=Limit(680)))[0] == 580
    assert bunch_and_limit(replace(some, queue="Heavy Ion"), ThrottleLimits(queue_limit=Limit(300)))[0] == 500


def test_the_threshold_of_a_shortage_of_work_lets_more_jobs_be_made() -> None:
    some = seen(1000, 1900, 300)
    assert throttle(some, ThrottleLimits(threshold=3.0)).passed
    assert not throttle(some, ThrottleLimits(threshold=1.5)).passed


def test_an_explanation_has_every_rule_with_its_numbers() -> None:
    limits = ThrottleLimits(queue_cap=Limit(3000, Level.QUEUE), running_cap=Limit(5000, Level.CORES))
    lines = explain(throttle(seen(1000, 1900, 300), limits))
    assert lines[0] == (
        "Throttled: enough jobs are queued: 2200 jobs are queued for 1000 that run (2.20 times as many), the limit is"
        " 2 times as many; 2200 jobs are queued, the limit is 2000. Only merge jobs are made."
    )
    assert [line.split(":")[0] for line in lines[1:]] == ["does not stop", "stops", *["does not stop"] * 4]
    assert not any("Throttled" in line for line in lines[1:]), "a rule that does not stop is no throttle"
    assert "2200 jobs are queued (whole queue), the cap is 3000" in lines[6]
    assert "1000 jobs run (core class), the cap is 5000" in lines[5]
    assert explain(throttle(seen(1000, 700, 100)))[0] == "300 jobs may be made, and soon more."


def test_limits_come_from_the_configuration_of_the_label() -> None:
    assert limits_of(DEFAULTS, "managed", "MC", "SCORE", "atlas") == ThrottleLimits()
    rows = [
        Row("jedi", "prod_job_throttler", "NQUEUELIMIT_MC_MCORE*", "100", "int"),
        Row("jedi", "prod_job_throttler", "NQUEUELIMIT_MC", "900", "int"),
        Row("jedi", "prod_job_throttler", "NRUNNINGCAP_MC_MCORE_HIMEM", "7", "int", "atlas"),
        Row("jedi", "prod_job_throttler", "THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE", "4", "float"),
        Row("jedi", "anal_job_throttler", "NQUEUECAP_MC", "50", "int"),
    ]
    some = Configuration(tuple(rows))
    assert limits_of(some, "managed", "MC", "MCORE_HIMEM", "atlas") == ThrottleLimits(
        2.0, Limit(100, Level.CORES), None, Limit(7)
    )
    assert limits_of(some, "managed", "MC", "SCORE", "atlas") == ThrottleLimits(2.0, Limit(900, Level.QUEUE))
    assert limits_of(some, "user", "MC", "SCORE", "atlas") == ThrottleLimits(2.0, None, Limit(50, Level.QUEUE))
    short = some.having(Row("jedi", "core", "WORK_SHORTAGE", "true", "bool"))
    assert limits_of(short, "managed", "x", "SCORE", "lab").threshold == 4.0


@pytest.mark.parametrize(
    ("name", "found"), [("MCORE_HIMEM", "MCORE"), ("SCORE", "SCORE"), ("GPU", ""), ("", ""), ("A_MCORE", "")]
)
def test_core_classes_go_by_the_name_of_the_resource_type(name: str, found: str) -> None:
    assert core_class(name) == found


def test_the_walltime_of_queued_jobs_is_scaled_to_those_that_state_none() -> None:
    assert total_walltime_s(0, 0, 5) is None
    assert total_walltime_s(1000, 10, 0) == 1000
    assert total_walltime_s(1000, 10, 5) == 1500


def test_standby_slots_count_as_running() -> None:
    found = parse_standby("MC simul:SCORE:20|8:MCORE:|9:MCORE:0|nonsense|x:y:z|:MCORE:3")
    assert found == (Standby("MC simul", "SCORE", 20), Standby("8", "MCORE"), Standby("9", "MCORE"))
    assert with_standby(JobCounts(5, 9), [(found[0], 4)]) == JobCounts(25, 9)
    assert with_standby(JobCounts(5, 9), [(found[1], 4)]) == JobCounts(9, 5)
    assert with_standby(JobCounts(5, 9), []) == JobCounts(5, 9)


counts = st.builds(JobCounts, *[st.integers(0, 100_000)] * 4)
caps = st.none() | st.builds(Limit, st.integers(0, 100_000), st.sampled_from(Level))
situations = st.builds(
    Situation,
    st.sampled_from(["MC", "Heavy Ion", "eventservice"]),
    st.sampled_from(["managed", "user"]),
    jobs=st.builds(Levels, counts, counts, counts),
    walltime_s=st.none() | st.floats(0, 1e9),
    waiting_priority=st.none() | st.integers(0, 1000),
    highest_priority=st.none() | st.integers(0, 1000),
    not_running_highest=st.integers(0, 1000),
)
limit_sets = st.builds(ThrottleLimits, st.floats(0.1, 10), caps, caps, caps)


@given(situation=situations, limits=limit_sets)
def test_nothing_is_allowed_without_limit_or_refused_without_reason(
    situation: Situation, limits: ThrottleLimits
) -> None:
    answer = throttle(situation, limits)
    assert answer.max_jobs is not None
    assert answer.merge_only is not answer.passed
    assert answer.passed or (answer.max_jobs == 0 and answer.code and answer.detail)
    held = [rule.code for rule in answer.rules if rule.held]
    assert bool(held) is bool(answer.code)
    if answer.lack_of_jobs:
        assert not held
        assert answer.min_priority is None
    if (
        limits.running_cap is not None
        and situation.jobs.at(limits.running_cap.level).running > limits.running_cap.value
    ):
        assert answer.merge_only
    assert len(explain(answer)) == 1 + len(answer.rules)


@given(situation=situations, limits=limit_sets, more=st.integers(0, 10_000))
def test_more_defined_jobs_never_open_a_throttle(situation: Situation, limits: ThrottleLimits, more: int) -> None:
    def heavier(some: JobCounts) -> JobCounts:
        return some + JobCounts(defined=more)

    jobs = situation.jobs
    loaded = Levels(heavier(jobs.resource_type), heavier(jobs.core_class), heavier(jobs.whole_queue))
    if not throttle(situation, limits).passed:
        assert not throttle(replace(situation, jobs=loaded), limits).passed


def test_an_allowance_with_an_unregistered_code_raises() -> None:
    with pytest.raises(refusals.UnknownRefusalError):
        Allowance(False, 0, code="just_because", detail="no reason")


@pytest.mark.parametrize("kind", ["queue", "running"])
def test_a_cap_of_0_names_the_share_and_does_not_say_to_wait(kind: str) -> None:
    found = throttle(replace(seen(0), queue="Express"), ThrottleLimits(**{f"{kind}_cap": Limit(0, Level.QUEUE)}))
    assert found.detail == f"the cap on {'queued' if kind == 'queue' else 'running'} jobs of Express (whole queue) is 0"
    advice = refusals.get(found.code).advice
    assert "Wait" not in advice and "NQUEUECAP" in advice and "NRUNNINGCAP" in advice


@pytest.mark.parametrize(("label", "component"), [("managed", "prod_job_throttler"), ("user", "anal_job_throttler")])
@pytest.mark.parametrize(("vo", "of"), [("", ""), ("atlas", " of atlas")])
def test_a_cap_names_its_setting_and_a_value_that_is_enough(label: str, component: str, vo: str, of: str) -> None:
    def decided(cap: int) -> Allowance:
        rows = [Row("jedi", component, "NQUEUECAP_MC simul", str(cap), "int", vo)]
        limits = limits_of(Configuration(tuple(rows)), label, "MC simul", "SCORE", "atlas")
        return throttle(seen(0, 38, label=label, **URGENT), limits)

    found = decided(2)
    expected = f"have an administrator set {component}.NQUEUECAP_MC simul{of} to 39 or more (it is 2)."
    assert found.advice == f"Wait until pilots have started queued jobs, or {expected}"
    assert decided(39).code == "", "the value is enough"
    assert decided(0).advice == f"H{expected[1:]}".replace("it is 2", "it is 0")
