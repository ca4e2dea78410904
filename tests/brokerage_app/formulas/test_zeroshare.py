import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.formulas.zeroshare import Decision, Work, decide, parse, process_group, refuses


def work(kind: str, *, priority: int = 0, share: str = "", group: str = "", merging: bool = False) -> Work:
    return Work(process_group(kind), group, share, priority, merging)


@pytest.mark.parametrize(
    ("policy", "asked", "accepted"),
    [
        ("type=evgen:100%,type=simul:100%,type=any:0%", work("evgen"), True),
        ("type=evgen:100%,type=simul:100%,type=any:0%", work("reco"), False),
        ("type=evgen:100%,type=simul:100%", work("reco"), True),
        ("priority>500:0,type=simul:100%,type=any:0%", work("simul", priority=600), False),
        ("priority>500:0,type=simul:100%,type=any:0%", work("simul", priority=500), True),
        ("type=evgen:100%,type=simul:100%,type=any:0%,priority>500:0%", work("evgen", priority=600), True),
        ("type=evgen:100%,type=any:0%,gshare=Express:100%,gshare=any:100%", work("simul", share="Express"), False),
        ("type=evgen:100%,gshare=Express:100%,type=any:0%,gshare=any:100%", work("simul", share="Express"), True),
        ("gshare=Express*:100%,gshare=any:0%", work("simul", share="Express Analysis"), True),
        ("gshare=Express:100%,gshare=any:0%", work("simul", share="Express Analysis"), False),
        ("group=(AP_Higgs|AP_Susy):0%", work("simul", group="AP_Susy"), False),
        ("group=(AP_Higgs|AP_Susy):0%", work("simul"), True),
        ("type=any:0%", work("validation"), True),
        ("priority<=400:0", work("simul", priority=400), False),
        ("type=evgen:100%, type=any:0%", work("reco"), False),
        ("type=evgen:100%, type=any:0%", work("evgen"), True),
        ("", work("reco"), True),
        ("type=simul:0", work("simul"), False),
        ("type=simul:1%", work("simul"), True),
        ("type=simul:group=AP_.*:0%", work("simul", group="AP_Higgs"), False),
        ("type=simul:group=AP_.*:0%", work("evgen", group="AP_Higgs"), True),
        ("type=simul:group=AP_.*:0%", work("simul", group="GP_Higgs"), True),
        ("gshare=Express:0%", work("simul"), False),
        ("type=simul:priority>=900:0%", work("simul", priority=900), False),
        ("type=simul:priority>=900:0%", work("simul", priority=899), True),
        ("type=others:0%", work("reco"), False),
        ("type=pile:0%,,", work("pile"), False),
        ("0%", work("simul"), False),
    ],
)
def test_policies(policy: str, asked: Work, accepted: bool) -> None:
    assert decide(parse(policy), asked).accepted is accepted


@pytest.mark.parametrize(
    ("sign", "numbers"),
    [
        (">", {501}),
        (">=", {500, 501}),
        ("<", {499}),
        ("<=", {499, 500}),
        ("==", {500}),
        ("=", {500}),
        ("!=", {499, 501}),
    ],
)
def test_comparisons_of_priorities(sign: str, numbers: set[int]) -> None:
    policy = parse(f"priority{sign}500:0%")
    assert {n for n in (499, 500, 501) if not decide(policy, work("simul", priority=n)).accepted} == numbers


def test_a_rule_on_priority_alone_is_not_for_merge_jobs() -> None:
    for policy in ("priority>500:0", "type=any:priority>500:0"):
        assert decide(parse(policy), work("simul", priority=600, merging=True)).accepted
        assert not decide(parse(policy), work("simul", priority=600)).accepted
    with_type = parse("type=simul:priority>500:0")
    assert not decide(with_type, work("simul", priority=100, merging=True)).accepted


def test_the_sub_policy_that_decides_is_named() -> None:
    policy = parse("type=evgen:100%,type=any:0%")
    assert decide(policy, work("evgen")) == Decision(True, "type=evgen:100%")
    refused = refuses(policy, work("reco", priority=7, share="Express"))
    assert refused is not None and refused.code == "zero_share"
    assert refused.detail == (
        "the site's policy has type=any:0% for work of type others, group none, share Express, priority 7"
    )
    assert refuses(policy, work("evgen")) is None


@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        ("type=evgen:100%,gshare=Express*:100%,group=any:0", []),
        ("type=evgen:100%, type=any:0%", ["' type=any' is not a field"]),
        ("priority>high:0", ["'priority>high' is not a field"]),
        ("type=(a:0", ["'(a' is not a regular expression"]),
        (
            "gshare=(?!x)y:0",
            ["'(?!x)y' looks ahead or behind with (?!, which is not supported, so it is taken as a plain name"],
        ),
        ("100%", ["'100%' has no field, so it applies to all work"]),
    ],
)
def test_faults_of_a_policy_are_named(policy: str, faults: list[str]) -> None:
    found = parse(policy).faults
    assert len(found) == len(faults)
    assert all(text in fault for text, fault in zip(faults, found, strict=True))


@pytest.mark.parametrize(
    ("kind", "group"),
    [
        ("evgen", "evgen"),
        ("merge", "merge"),
        ("ptest", "test"),
        ("rc_alrb", "test"),
        ("reco", "others"),
        (None, "others"),
    ],
)
def test_process_groups(kind: str | None, group: str) -> None:
    assert process_group(kind) == group


policies = st.text(alphabet="type=any:0%,gshare group>5*(|[", max_size=40) | st.text(max_size=20)


@given(policy=policies, kind=st.sampled_from(["evgen", "reco", "ptest"]), priority=st.integers(), merging=st.booleans())
def test_every_policy_has_an_answer_and_more_rules_behind_change_nothing_that_is_decided(
    policy: str, kind: str, priority: int, merging: bool
) -> None:
    asked = work(kind, priority=priority, merging=merging)
    decision = decide(parse(policy), asked)
    if decision.because:
        assert decide(parse(f"{policy},type=any:0%,type=any:100%"), asked) == decision
    if kind == "ptest":
        assert decision.accepted
