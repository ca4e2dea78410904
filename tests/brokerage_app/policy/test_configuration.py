"""The configuration: which row of gdp_config gives a value, and what holds without any."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.policy.configuration import DEFAULTS, Configuration, Level, Leveled, Row, problem_of
from brokerage_app.policy.parameter import Type, UnknownParameterError
from brokerage_app.policy.parameters import PARAMETERS, known, parse_key


def row(component: str, key: str, value: str, type: str = "float", vo: str = "", app: str = "jedi") -> Row:
    return Row(app, component, key, value, type, vo)


def of(*rows: Row) -> Configuration:
    return Configuration(rows)


@pytest.mark.parametrize(
    ("names", "value"),
    [
        (("taskbrokerage", "DISK_THRESHOLD", "MC 16 simul"), 100.0),
        (("taskbrokerage", "NQUEUED_NUC_CAP"), 2000),
        (("jobbroker", "NW_ACTIVE"), True),  # Δ19
        (("jobbroker", "MIN_WEIGHT", "managed", "MC 16"), 0.0),
        (("jobbroker", "MAX_DISKIO_DEFAULT"), None),
        (("core", "WORK_SHORTAGE"), False),
        (("analy_eval", "USER_USAGE_THRESHOLD_B"), 8000.0),  # Δ50
        (("queue_filler", "MIN_FILES_READY", "managed"), 50),
        (("queue_filler", "MIN_FILES_READY", "managed", "FC"), 10),
        (("rebroker", "FAST_REBRO_THRESHOLD_NQUEUE", "MC"), None),
        (("rebroker", "FAST_REBRO_THRESHOLD_NQUEUE_FRAC"), 0.3),
    ],
)
def test_without_rows_the_default_holds(names: tuple[str, ...], value: Any) -> None:
    assert DEFAULTS.get(*names) == value
    assert not DEFAULTS.is_set(*names)


MIN = "MIN_WEIGHT"


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        ([(f"{MIN}_managed_MC 16", "1", ""), (f"{MIN}_managed", "2", ""), (MIN, "3", "")], 1.0),
        ([(f"{MIN}_managed", "2", ""), (MIN, "3", "")], 2.0),
        ([(MIN, "3", "")], 3.0),
        ([(MIN, "3", "atlas"), (MIN, "4", "")], 3.0),
        ([(MIN, "3", "belle"), (MIN, "4", "")], 4.0),
        ([(MIN, "3", "belle")], 0.0),
        # The more specific key counts before the VO.
        ([(MIN, "3", "atlas"), (f"{MIN}_managed", "4", "")], 4.0),
        ([(f"{MIN}_user", "5", "")], 0.0),
    ],
)
def test_the_most_specific_key_wins_and_a_row_of_the_vo_before_that_of_all(rows: list[Any], value: float) -> None:
    found = of(*(row("jobbroker", key, text, vo=vo) for key, text, vo in rows))
    assert found.get("jobbroker", MIN, "managed", "MC 16", vo="atlas") == value


def test_who_names_no_vo_gets_rows_of_no_vo_only() -> None:
    found = of(row("jobbroker", MIN, "3", vo="atlas"))
    assert found.get("jobbroker", MIN) == found.get("jobbroker", MIN, vo=None) == 0.0


@pytest.mark.parametrize(
    ("names", "value", "type", "expected"),
    [
        (("jobbroker", "NW_ACTIVE"), "True", "bool", True),
        (("jobbroker", "NW_ACTIVE"), "false", "boolean", False),
        (("jobbroker", "NW_ACTIVE"), "yes", "bool", False),  # everything but true is false
        (("jobbroker", "NQUEUED_SAT_CAP"), "7", "integer", 7),
        (("jobbroker", "NQUEUED_SAT_CAP"), "7.0", "float", 7),
        (("jobbroker", "NQUEUED_SAT_CAP"), "7.5", "float", 150),  # does not convert: not set
        (("jobbroker", "NQUEUED_SAT_CAP"), "seven", "int", 150),
        (("jobbroker", "NQUEUED_SAT_CAP"), "7", "number", 150),  # no such type
        (("jobbroker", "NQUEUED_SAT_CAP"), "7", "str", 150),
        (("jobbroker", "NQUEUED_SAT_CAP"), "true", "bool", 150),
        (("jobbroker", "NW_THRESHOLD"), "2", "int", 2.0),
        (("jobbroker", "NW_THRESHOLD"), "nan", "float", 1.7),
        (("jobbroker", "NW_THRESHOLD"), "inf", "float", 1.7),
        (("jobgen", "GROUPBYATTR"), "workingGroup", "string", "workingGroup"),
        (("jobgen", "GROUPBYATTR"), "7", "int", None),
    ],
)
def test_values_are_typed_and_one_that_does_not_convert_is_not_set(
    names: tuple[str, str], value: str, type: str, expected: Any
) -> None:
    assert of(row(*names, value, type)).get(*names) == expected


def test_json_comes_from_its_own_column_and_is_nobody_elses_to_change() -> None:
    boosts = [{"name": "ada", "type": "user", "prio": 5, "expire": None}]
    name = ("dbproxy", "USER_JOB_PRIO_BOOST_DICTS")
    found = of(Row("pandaserver", *name, "", "json", "", json.dumps(boosts)))
    found.get(*name).clear()
    assert found.get(*name) == boosts
    assert of(Row("pandaserver", *name, "", "json", "", "{")).get(*name) is None


def test_a_bad_specific_row_leaves_the_general_one_in_force() -> None:
    found = of(row("jobbroker", f"{MIN}_managed", "much"), row("jobbroker", MIN, "3"))
    assert found.get("jobbroker", MIN, "managed") == 3.0
    assert [(r.key, sentence) for r, sentence in found.faults()] == [
        (f"{MIN}_managed", "'much' as float is not of the type float, which MIN_WEIGHT has")
    ]


def test_a_row_of_another_application_is_not_meant() -> None:
    assert of(row("jobbroker", MIN, "3", app="pandaserver")).get("jobbroker", MIN) == 0.0


@pytest.mark.parametrize(
    ("component", "key", "sentence"),
    [
        ("JumboWatchDog", "JUMBO_MAX_TASKS", "its parameters are those of the component jumbo_dog"),
        ("taskrefiner", "AES_EVENTPOOLSIZE", "tasks are not converted to the event service here"),
        ("jobgen", "TYPNFILES_user_phys_run", "NFILES limits the files that a pass reads"),
    ],
)
def test_what_nothing_could_follow_is_refused_with_the_reason(component: str, key: str, sentence: str) -> None:
    ((_, said),) = of(row(component, key, "2", "int")).faults()
    assert sentence in said
    with pytest.raises(UnknownParameterError, match=sentence):
        DEFAULTS.with_value(component, key, 2)


@pytest.mark.parametrize(
    ("component", "key", "value"),
    [
        ("jobgen", "GROUPBYATTR_MC", "colour"),
        ("brokerage", "TASK_BROKER_user", "analysis"),
        ("anal_jobbroker", "BASE_WEIGHT", "x"),
    ],
)
def test_a_text_that_nothing_understands_is_refused(component: str, key: str, value: str) -> None:
    problem = problem_of("jedi", component, key, value, "str")
    assert (
        problem is not None and problem[0] == "value" and "is one of" in problem[1] and f"not {value!r}" in problem[1]
    )


def test_other_spellings_of_a_key_are_read_after_its_own() -> None:
    old = row("anal_watchdog", "PRESTAGE_LIMIT", "5")
    assert of(old).get("anal_watchdog", "USER_PRESTAGE_LIMIT") == 5.0
    assert of(old, row("anal_watchdog", "USER_PRESTAGE_LIMIT", "6")).get("anal_watchdog", "USER_PRESTAGE_LIMIT") == 6.0
    rate = row("watchdog", "MAX_FAILED_HEP_SCORE_RATE_TO_PAUSE_managed", "0.5")
    assert of(rate).get("watchdog", "MAX_HEP_SCORE_FAILURE_RATE_TO_PAUSE", "managed") == 0.5


@pytest.mark.parametrize(
    ("keys", "resource", "expected"),
    [
        (["Q_MCORE_HIMEM", "Q_MCORE*", "Q"], "MCORE_HIMEM", Leveled(0, Level.RESOURCE)),
        (["Q_MCORE*", "Q"], "MCORE_HIMEM", Leveled(0, Level.CORES)),
        (["Q_SCORE*", "Q"], "MCORE_HIMEM", Leveled(1, Level.QUEUE)),
        (["Q_SCORE*"], "SCORE", Leveled(0, Level.CORES)),
        (["Q_SCORE*"], "UCORE", Leveled(None, Level.RESOURCE)),
        (["Q_MCORE", "Q"], "", Leveled(1, Level.QUEUE)),
        ([], "SCORE", Leveled(None, Level.RESOURCE)),
    ],
)
def test_a_limit_of_the_throttler_says_at_which_level_it_was_found(
    keys: list[str], resource: str, expected: Leveled
) -> None:
    found = of(*(row("prod_job_throttler", f"NQUEUELIMIT_{key}", str(n), "int") for n, key in enumerate(keys)))
    assert found.leveled("prod_job_throttler", "NQUEUELIMIT", "Q", resource)[:2] == expected[:2]


def test_a_value_says_which_row_it_comes_from() -> None:
    found = of(row("jobbroker", f"{MIN}_managed", "2", vo="atlas"))
    assert found.source("jobbroker", MIN, "managed", "MC", vo="atlas").words == "MIN_WEIGHT_managed of atlas"
    assert found.source("jobbroker", MIN, "managed", "MC").words == "default"


def test_suffixes_that_are_set_can_be_listed() -> None:
    found = of(
        row("watcher", "HEARTBEAT_TIMEOUT_production", "3", app="pandaserver"),
        row("watcher", "HEARTBEAT_TIMEOUT_production", "4", app="pandaserver", vo="atlas"),
        row("watcher", "HEARTBEAT_TIMEOUT_push_noheartbeat", "48", app="pandaserver"),
        row("watcher", "HEARTBEAT_TIMEOUT", "5", app="pandaserver"),
    )
    assert found.variants("watcher", "HEARTBEAT_TIMEOUT") == [
        ("", ""),
        ("production", ""),
        ("production", "atlas"),
        ("push_noheartbeat", ""),
    ]
    assert DEFAULTS.variants("watcher", "HEARTBEAT_TIMEOUT") == []


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("jobbroker", "MIN_WAIT"), "nearest name is MIN_WEIGHT"),
        (("jobbroker", "JOB_SUBMISSION"), "JOB_SUBMISSION is a parameter of jobgen"),
        (("jobbrokers", "X"), "nearest name is jobbroker"),
        (("core", "WORK_SHORTAGE", "managed"), "takes 0 suffixes, not 1"),
    ],
)
def test_a_name_that_is_not_known_is_an_error_that_names_the_nearest(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UnknownParameterError, match=sentence):
        DEFAULTS.get(*names)


def test_one_value_can_be_changed_to_see_what_would_be() -> None:
    changed = DEFAULTS.with_value("jobbroker", f"{MIN}_managed", 2.5)
    assert changed.get("jobbroker", MIN, "managed") == 2.5
    assert changed.with_value("jobbroker", f"{MIN}_managed", None) == DEFAULTS
    assert DEFAULTS.with_value("core", "WORK_SHORTAGE", True).get("core", "WORK_SHORTAGE") is True
    assert DEFAULTS.with_value("dbproxy", "USER_JOB_PRIO_BOOST_DICTS", [1]).get(
        "dbproxy", "USER_JOB_PRIO_BOOST_DICTS"
    ) == [1]
    with pytest.raises(ValueError, match="type float"):
        DEFAULTS.with_value("jobbroker", MIN, "much")
    with pytest.raises(UnknownParameterError):
        DEFAULTS.with_value("jobbroker", "MIN_WAIT", 1)


@pytest.mark.parametrize(
    ("given", "column", "sentence"),
    [
        (("jedi", "jobbroker", "MIN_WEIGTH_managed", "1", "float"), "key", "MIN_WEIGHT"),
        (("jedi", "jobroker", "MIN_WEIGHT", "1", "float"), "component", "jobbroker"),
        (
            ("jedi", "base_job_throttler", "NQUEUECAP", "2", "int"),
            "component",
            "of anal_job_throttler and of prod_job_throttler",
        ),
        (("pandaserver", "jobbroker", "MIN_WEIGHT", "1", "float"), "app", "belongs to jedi"),
        (("jedi", "jobbroker", "MIN_WEIGHT", "1", "number"), "type", "of the type float"),
        (("jedi", "jobbroker", "MIN_WEIGHT", "one", "float"), "value", "'one' as float"),
        (("jedi", "jobbroker", "MIN_WEIGHT", "-1", "float"), "value", "at least 0"),
        (("jedi", "jobbroker", "MIN_INPUT_COMPLETENESS", "101", "int"), "value", "at most 100 %; this is 101"),
        (("jedi", "jobbroker", "NW_ACTIVE", "yes", "bool"), "value", "true or false, not 'yes'"),
        (("jedi", "jobbroker", "MIN_WEIGHT_", "1", "float"), "key", "no parameter"),
        (("jedi", "core", "WORK_SHORTAGE_managed", "true", "bool"), "key", "nearest name is WORK_SHORTAGE"),
        (
            ("pandaserver", "dbproxy", "USER_JOB_PRIO_BOOST_DICTS", "", "json", "[1"),
            "value_json",
            "not of the type json",
        ),
    ],
)
def test_a_row_that_would_mean_nothing_is_refused_by_its_column(
    given: tuple[str, ...], column: str, sentence: str
) -> None:
    found = problem_of(*given)
    assert found is not None
    assert found[0] == column and sentence in found[1]


def test_defaults_are_of_their_types_and_within_their_bounds() -> None:
    for parameter in PARAMETERS:
        defaults = [value for value in (parameter.default, *(v for _, v in parameter.special)) if value is not None]
        for value in defaults:
            if isinstance(value, bool | int | float):
                kind = parameter.type.value
                assert problem_of(parameter.app, parameter.component, parameter.key, str(value), kind) is None, (
                    parameter
                )


def test_names_are_unique_and_no_key_hides_another() -> None:
    names = [(p.component, spelling) for p in PARAMETERS for spelling in (p.key, *p.also)]
    assert len(names) == len(set(names))
    for parameter in PARAMETERS:
        assert parse_key(parameter.component, parameter.key) == (parameter, "")


configurable = [p for p in PARAMETERS if p.type in (Type.INT, Type.FLOAT)]
suffixes_of_any = st.lists(st.sampled_from(["managed", "MC 16 simul", "SITE_A_MCORE", "x-y", "MCORE*"]), max_size=3)


@given(
    which=st.integers(0, len(configurable) - 1),
    given=suffixes_of_any,
    number=st.integers(0, 10**6),
    vo=st.sampled_from(["", "atlas"]),
)
def test_any_parameter_can_be_set_for_any_suffix_and_survives_json(
    which: int, given: list[str], number: int, vo: str
) -> None:
    parameter = configurable[which]
    suffixes = given[: len(parameter.per)]
    found = DEFAULTS.with_value(parameter.component, "_".join([parameter.key, *suffixes]), number, vo=vo)
    again = Configuration.from_json(json.loads(json.dumps(found.as_json())))
    assert again == found and hash(again) == hash(found)
    assert again.get(parameter.component, parameter.key, *suffixes, vo="atlas") == number
    assert known(parameter.component, parameter.key) is parameter
