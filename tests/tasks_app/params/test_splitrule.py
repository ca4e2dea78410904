from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.schema import parse
from tasks_app.params.split_codes import CODES
from tasks_app.params.splitrule import SplitRule, SplitRuleError
from tasks_app.params.to_splitrule import from_params
from tests.tasks_app.params import dictionaries as d


def values_of(code: str) -> st.SearchStrategy[str]:
    spec = CODES[code]
    if spec.values:
        return st.sampled_from([str(number) for number in spec.values])
    if spec.kind == "fields":
        return st.lists(st.integers(1, 999), min_size=1, max_size=5).map(lambda ns: ",".join(map(str, ns)))
    if spec.kind == "text":
        return st.sampled_from(["rucio", "local", "my-ddm_2"])
    if spec.kind == "rules":
        return st.just("NG:10|MF:200")
    return st.integers(-5 if spec.kind == "signed" else 0, 10**6).map(str)


rules = st.lists(st.sampled_from(sorted(CODES)), unique=True, max_size=12).flatmap(
    lambda codes: st.fixed_dictionaries({code: values_of(code) for code in codes})
)


@given(values=rules)
def test_a_rule_survives_the_column(values: dict[str, str]) -> None:
    text = ",".join(f"{code}={value}" for code, value in values.items())
    rule = SplitRule.parse(text)
    assert dict(rule.values) == values
    assert str(rule) == text


@given(values=rules, code=st.sampled_from(["NF", "TW", "AN"]))
def test_setting_and_removing_a_code_leaves_the_others(values: dict[str, str], code: str) -> None:
    rule = SplitRule.parse(",".join(f"{c}={v}" for c, v in values.items()))
    assert rule.having(code, 7).get_str(code) == "7"
    assert dict(rule.having(code, 7).without(code).values) == {c: v for c, v in values.items() if c != code}


@pytest.mark.parametrize(
    "text", ["NF", "NF=", "NF=x", "NF=-1", "QQ=1", "NF=1,NF=2", "US=4", "AN=2,x", "5", ",", "NF=١"]
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SplitRuleError):
        SplitRule.parse(text)


def test_an_absent_column_is_the_empty_rule() -> None:
    assert str(SplitRule.parse(None)) == "" == str(SplitRule.parse(""))


def test_name_fields_may_hold_commas_between_other_codes() -> None:
    rule = SplitRule.parse("NF=2,AN=2,3,4,US=1")
    assert (rule.name_fields, rule.get_int("NF"), rule.get_int("US")) == ((2, 3, 4), 2, 1)
    assert str(rule.without("AN")) == "NF=2,US=1"


def test_weights_may_be_negative() -> None:
    assert SplitRule.parse("TW=-1").get_int("TW") == -1


def test_rules_kept_by_retries_are_a_rule_of_their_own() -> None:
    assert SplitRule.parse("RM=NG:10|MF:200,NF=1").before_retries.get_int("MF") == 200


@pytest.mark.parametrize(
    ("text", "on"), [("RL=0", True), ("RL=1", True), ("LI=0", False), ("NP=0", False), ("", False)]
)
def test_a_code_is_on_when_it_is_there_with_four_exceptions(text: str, on: bool) -> None:
    assert SplitRule.parse(text).flag(text[:2] or "RL") is on


def test_an_unknown_code_cannot_be_asked_for() -> None:
    with pytest.raises(KeyError):
        SplitRule.parse("NF=1").get_int("QQ")


@pytest.mark.parametrize(
    ("text", "files"), [("NF=2", 2), ("NF=2,DY=10,EI=100", 20), ("NF=2,DY=100,EI=100", 2), ("NG=1", None)]
)
def test_files_per_job_counts_ranges_when_events_are_dynamic(text: str, files: int | None) -> None:
    assert SplitRule.parse(text).files_per_job() == files


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, "NE=1,US=2"),
        ({"skipScout": True}, "NE=1"),
        ({"skipScout": False}, "NE=1,US=2"),
        ({"nEventsPerInputFile": 100, "nEventsPerJob": 250}, "EI=100,NE=250,NF=2,US=2"),
        ({"nEventsPerInputFile": 100, "nEventsPerJob": 50}, "EI=100,NE=50,US=2"),
        ({"nEventsPerJob": None, "tgtNumEventsPerJob": 30}, "NE=30,US=2"),
        ({"tgtNumEventsPerJob": 30}, "NE=1,US=2"),
        ({"nFilesPerJob": 4, "nEventsPerJob": None, "tgtNumEventsPerJob": 30}, "NF=4,US=2"),
        ({"forceStaged": True, "useLocalIO": 0}, "NE=1,US=2,LI=1"),
        ({"useLocalIO": 0}, "NE=1,US=2,LI=0"),
        ({"stayOutputOnSite": True, "t1Weight": -1}, "TW=-1,SO=1,NE=1,US=2"),
        ({"ipConnectivity": "http#IPv6", "allowInputLAN": "only"}, "NE=1,US=2,IL=2,IP=2,IK=6"),
        ({"useJobCloning": "storeonce"}, "NE=1,US=2,UC=2,ES=1,NS=2,EC=2"),
        ({"addNthFieldToLFN": "2,3", "ddmBackEnd": "rucio"}, "NE=1,US=2,DE=rucio,AN=2,3"),
        ({"multiStepExec": {"main": 1}, "pfnList": ["a"]}, "NE=1,US=2,PL=1,MS=1"),
        (
            {"nEventsPerWorker": 1, "inFilePosEvtNum": True, "nJumboJobs": 2, "maxJumboPerSite": 3},
            "ES=1,NJ=2,IF=1,NE=1,US=2,MJ=3",
        ),
    ],
)
def test_parameters_become_codes(changes: dict[str, Any], wanted: str) -> None:
    assert str(from_params(parse(d.smallest(**changes)))) == wanted


def test_every_usual_task_gives_a_rule_that_can_be_read_again() -> None:
    for make in d.ALL:
        rule = from_params(parse(make()))
        assert SplitRule.parse(str(rule)) == rule
