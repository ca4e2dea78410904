from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.classes import TaskClass
from brokerage_app.policy.configuration import DEFAULTS, Row
from brokerage_app.policy.parameters import PARAMETERS
from brokerage_app.policy.userthrottle import Caps, Quota, ShareState, UserUsage, class_a_percent, refusal
from jedisite import refusals

A, B, C, S = TaskClass.A, TaskClass.B, TaskClass.C, TaskClass.S
SHARE = "User Analysis"


NOTHING = UserUsage()
NO_CAP = Caps()


def ask(usage: UserUsage = NOTHING, caps: Caps = NO_CAP, **more: Any) -> str:
    skip = refusal(who="ada", usage=usage, caps=caps, **more)
    return skip.code if skip is not None else ""


CAP = Caps(jobs=1000, cores=4000)


@pytest.mark.parametrize(
    ("usage", "code"),
    [
        (UserUsage(running_jobs=1000, queued_jobs=2000, running_cores=4000, queued_cores=8000), ""),
        (UserUsage(running_jobs=1001), "user_running_jobs"),
        (UserUsage(queued_jobs=2001), "user_queued_jobs"),
        (UserUsage(running_cores=4001), "user_running_cores"),
        (UserUsage(queued_cores=8001), "user_queued_cores"),
        (UserUsage(running_jobs=1001, queued_jobs=2001), "user_running_jobs"),
    ],
)
def test_a_user_above_a_cap_waits(usage: UserUsage, code: str) -> None:
    assert ask(usage, CAP) == code
    assert ask(usage, CAP, merging=True) == ""
    assert ask(usage, Caps()) == ""


def test_the_sentence_has_the_numbers_and_the_name() -> None:
    skip = refusal(who="the group phys-higgs", usage=UserUsage(queued_jobs=2001), caps=CAP)
    assert skip is not None
    assert skip.detail == "2001 queued jobs, 2000 are allowed for the group phys-higgs"
    assert refusals.get(skip.code).group == "throttle"


def test_a_cap_of_zero_is_raised_by_people_and_not_by_waiting() -> None:
    skip = refusal(who="the user ada", usage=UserUsage(running_jobs=1), caps=Caps(jobs=0))
    assert skip is not None
    assert (skip.code, skip.detail) == ("user_cap_zero", "1 running job, and the cap is 0 for the user ada")
    assert refusals.get(skip.code).who_can_fix == "expert"
    first = refusal(who="the user ada", usage=NOTHING, caps=Caps(jobs=0))
    assert first is not None, "no first batch passes a cap of 0"
    assert (first.code, first.detail) == ("user_cap_zero", "0 running jobs, and the cap is 0 for the user ada")
    assert (ask(NOTHING, Caps(cores=0)), ask(NOTHING, Caps(jobs=0), merging=True)) == ("user_cap_zero", "")
    one = refusal(who="the user ada", usage=UserUsage(running_jobs=2), caps=Caps(jobs=1))
    assert one is not None and one.detail == "2 running jobs, 1 is allowed for the user ada"


@pytest.mark.parametrize(
    ("of_class", "percent", "slots_hi", "code"),
    [
        (C, 90.0, 5000, ""),
        (C, 91.0, 5000, "class_c_waits"),
        (B, 95.0, 5000, ""),
        (B, 96.0, 5000, "class_b_waits"),
        (A, 190.0, 500, ""),
        (A, 200.0, 500, ""),
        (A, 210.0, 500, "class_a_waits"),
        (A, 100.0, 2500, ""),
        (A, 101.0, 2500, "class_a_waits"),
        (A, 200.0, None, ""),
        (A, 201.0, None, "class_a_waits"),
        (A, 1e6, 0, ""),
        (S, 1e6, 5000, ""),
    ],
)
def test_users_who_run_much_wait_while_the_share_is_used_up(
    of_class: TaskClass, percent: float, slots_hi: float | None, code: str
) -> None:
    state = ShareState(percent, slots_hi=slots_hi)
    assert ask(share=SHARE, state=state, of_class=of_class) == code
    assert ask(share=SHARE, state=state, of_class=of_class, merging=True) == code
    assert ask(share="Group Analysis", state=state, of_class=of_class) == ""
    assert ask(share=SHARE, state=state) == ""
    assert ask(share=SHARE, state=ShareState(None, level1=500, slots_hi=slots_hi), of_class=of_class) == ""


def test_the_smaller_of_the_usages_of_share_and_branch_counts() -> None:
    assert ask(share=SHARE, state=ShareState(120, level1=89), of_class=C) == ""
    assert ask(share=SHARE, state=ShareState(120, level1=91), of_class=C) == "class_c_waits"
    assert ask(share=SHARE, state=ShareState(89, level1=120), of_class=C) == ""


def test_the_limit_of_class_a_falls_with_the_slots() -> None:
    assert class_a_percent(500, 1000) == 200
    assert class_a_percent(1000, 1000) == class_a_percent(2500, 1000) == 100


@pytest.mark.parametrize(
    ("quotas", "code", "merging"),
    [
        ([Quota(100, 100)], "near_quota", ""),
        ([Quota(101, 100)], "over_quota", "over_quota"),
        ([Quota(90, 100)], "", ""),
        ([Quota(91, 100)], "near_quota", ""),
        ([Quota(1e9, 0)], "", ""),
        ([Quota(problem="no answer in 10 s")], "quota_unknown", "quota_unknown"),
        ([Quota(problem="no answer"), Quota(2, 1)], "over_quota", "over_quota"),
        ([Quota(1, 10), Quota(9.5, 10)], "near_quota", ""),
    ],
)
def test_quotas(quotas: list[Quota], code: str, merging: str) -> None:
    assert ask(quotas=quotas) == code
    assert ask(quotas=quotas, merging=True) == merging


def test_caps_come_from_the_configuration() -> None:
    rows = [
        Row("pandaserver", "prio_mgr", "CAP_RUNNING_USER_JOBS", "1000", "int"),
        Row("pandaserver", "prio_mgr", "CAP_RUNNING_GROUP_CORES", "50", "int", "atlas"),
    ]
    configuration = DEFAULTS.having(*rows)
    assert Caps.from_configuration(configuration, group=False, vo="atlas") == Caps(jobs=1000)
    assert Caps.from_configuration(configuration, group=True, vo="atlas") == Caps(cores=50)
    assert Caps.from_configuration(configuration, group=True, vo="lab") == Caps()


counts = st.integers(0, 5000)


@given(
    usage=st.builds(UserUsage, counts, counts, counts, counts),
    caps=st.builds(Caps, st.none() | st.integers(0, 2000), st.none() | st.integers(0, 2000)),
    fewer=st.builds(UserUsage, counts, counts, counts, counts),
)
def test_a_user_with_fewer_jobs_is_never_refused_more(usage: UserUsage, caps: Caps, fewer: UserUsage) -> None:
    less = UserUsage(
        min(usage.running_jobs, fewer.running_jobs),
        min(usage.queued_jobs, fewer.queued_jobs),
        min(usage.running_cores, fewer.running_cores),
        min(usage.queued_cores, fewer.queued_cores),
    )
    if not ask(usage, caps):
        assert not ask(less, caps)


@pytest.mark.parametrize(
    ("code", "key"),
    [
        ("user_running_jobs", "CAP_RUNNING_USER_JOBS"),
        ("user_queued_jobs", "CAP_RUNNING_USER_JOBS"),
        ("user_running_cores", "CAP_RUNNING_USER_CORES"),
        ("user_queued_cores", "CAP_RUNNING_USER_CORES"),
        ("user_cap_zero", "CAP_RUNNING_USER_JOBS"),
        ("throttled_running_cap", "NRUNNINGCAP"),
        ("throttled_queue_cap", "NQUEUECAP"),
    ],
)
def test_advice_on_a_cap_names_the_setting(code: str, key: str) -> None:
    advice = refusals.get(code).advice
    assert key in advice.replace(",", "").split(), advice
    assert any(one.key == key and one.component in advice for one in PARAMETERS)
