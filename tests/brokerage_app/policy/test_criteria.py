"""The language of criteria: what it reads, what it refuses, and that predicate and filter say the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerage_app.grid.criteria_sql import to_q
from brokerage_app.policy.criteria import ATTRIBUTES, NUMBERS, TEXTS, like, sentence
from brokerage_app.policy.criteria_parser import ParseError, bindings, parse
from tasks_app.models import Task

FIELDS = {
    "prodSourceLabel": "prod_source_label",
    "workingGroup": "working_group",
    "processingType": "processing_type",
    "coreCount": "core_count",
    "site": "site",
    "eventService": "event_service",
    "splitRule": "split_rule",
    "campaign": "campaign",
}


def holds(criteria: str | None, variables: str = "", **values: Any) -> bool:
    return parse(criteria, variables).matches(values)


@pytest.mark.parametrize(
    ("criteria", "variables", "values", "expected"),
    [
        # The examples of the JEDI wiki.
        ("processingType IN (:p1,:p2)", "p1:evgen,p2:simul", {"processingType": "simul"}, True),
        ("processingType IN (:p1,:p2)", "p1:evgen,p2:simul", {"processingType": "Simul"}, False),
        ("workingGroup LIKE :p1", "p1:GP_%", {"workingGroup": "GP_Higgs"}, True),
        ("workingGroup LIKE :p1", "p1:GP_%", {"workingGroup": "gp_top"}, True),
        ("workingGroup LIKE :p1", "p1:GP_%", {"workingGroup": "XGP_Top"}, False),
        ("workingGroup LIKE :p1", "p1:GP_%", {"workingGroup": "GPxHiggs"}, False),
        ("workingGroup NOT LIKE :p1", "p1:GP_%", {"workingGroup": "AP_X"}, True),
        # A null is never equal, unequal, in, like, or not.
        ("workingGroup LIKE :p1", "p1:GP_%", {"workingGroup": None}, False),
        ("workingGroup NOT LIKE :p1", "p1:GP_%", {}, False),
        ("NOT workingGroup LIKE :p1", "p1:GP_%", {}, False),
        ("campaign = :a", "a:x", {}, False),
        ("campaign <> :a", "a:x", {}, False),
        ("NOT (campaign = :a)", "a:x", {}, False),
        ("campaign NOT IN (:a)", "a:x", {}, False),
        ("NOT (campaign = :a AND processingType = :a)", "a:x", {"processingType": "y"}, True),
        ("NOT (campaign = :a OR processingType = :a)", "a:x", {"processingType": "y"}, False),
        ("campaign IS NULL", "", {}, True),
        ("NOT campaign IS NULL", "", {}, False),
        ("campaign is not null", "", {"campaign": "mc23"}, True),
        # Numbers compare as numbers, also bound ones.
        ("coreCount > 1 AND processingType = :p1", "p1:reco", {"coreCount": 8, "processingType": "reco"}, True),
        ("coreCount > 1 AND processingType = :p1", "p1:reco", {"coreCount": 1, "processingType": "reco"}, False),
        ("coreCount >= :n", "n:10", {"coreCount": 9}, False),
        ("coreCount in (1, :n)", "n:8", {"coreCount": 8}, True),
        ("coreCount <> 1", "", {"coreCount": 8}, True),
        ("eventService != 1", "", {"eventService": 1}, False),
        # Names in any case; whole tokens: :p1 does not eat the start of :p10.
        ("PROCESSINGTYPE = :p10", "p1:a,p10:b", {"processingType": "b"}, True),
        # AND before OR; parentheses.
        ("campaign = 'a' OR campaign = 'b' AND coreCount = 1", "", {"campaign": "a", "coreCount": 2}, True),
        ("(campaign = 'a' OR campaign = 'b') AND coreCount = 1", "", {"campaign": "a", "coreCount": 2}, False),
        ("not not campaign = 'it''s'", "", {"campaign": "it's"}, True),
        # Without criteria everything belongs here.
        (None, "", {}, True),
        ("  ", "", {}, True),
    ],
)
def test_criteria_mean_what_sql_means(criteria, variables, values, expected):
    assert holds(criteria, variables, **values) is expected


@pytest.mark.parametrize(
    ("criteria", "says", "position"),
    [
        ("processType = :p1", "no attribute processType", 1),
        ("site = :p2", "variable :p2 has no value", 8),
        ("site =", "Expected a :variable, a number or a 'text', found the end", 7),
        ("site IN :p1", "Expected (, found ':p1'", 9),
        ("site IN (:p1", "Expected ), found the end", 13),
        ("(site = :p1", "Expected ), found the end", 12),
        ("site = :p1 site = :p1", "Expected AND, OR or the end, found 'site'", 12),
        ("site = :p1 AND", "Expected the name of an attribute, NOT or (, found the end", 15),
        ("site NOT = :p1", "Expected IN or LIKE, found '='", 10),
        ("site IS :p1", "Expected NULL", 9),
        ("site = 'x", "the ' that ends a text", 8),
        ("site = :p1; DROP TABLE jobs", "a name, a value or an operator, found '; DROP TAB'", 11),
        ("site = 5", "site is a text: write '5'", 8),
        ("coreCount = :p1", "coreCount is a whole number, 'one' is not", 13),
        ("coreCount LIKE :p1", "coreCount is a number", 11),
        ("site", "Expected =, <>, <, <=, >, >=, IN, LIKE or IS, found the end", 5),
        ("1 = 1", "Expected the name of an attribute", 1),
        ("(" * 60 + "site = :p1" + ")" * 60, "More than 50 parentheses", 51),
        ("NOT " * 4000 + "site = :p1", "limit is 4000", 4000),
    ],
)
def test_what_cannot_be_read_is_refused_with_place_and_expectation(criteria, says, position):
    with pytest.raises(ParseError) as caught:
        parse(criteria, "p1:one")
    assert says in str(caught.value)
    assert (caught.value.position, f"at character {position})" in str(caught.value)) == (position, True)


def test_variables_without_exactly_one_colon_are_ignored():
    assert bindings("p1:evgen, p2 : simul ,p3,p4:a:b,") == {"p1": "evgen", "p2": "simul"}


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("%", "", True),
        ("a%", "a", True),
        ("%a", "ba", True),
        ("%a", "ab", False),
        ("a%a", "a", False),
        ("a%a", "aa", True),
        ("%c", "cc", True),
        ("a%b%c", "aXbXbc", True),
        ("a%b%c", "acb", False),
        ("a_c", "abc", False),
        ("a_c", "A_C", True),
        ("a.c", "abc", False),
        ("%x%x%", "x", False),
        ("a\nb%", "a\nbc\n", True),
        ("É%", "éa", False),
        ("abc", "ABC", True),
    ],
)
def test_like_is_anchored_and_knows_only_the_percent_sign(pattern, value, expected):
    assert like(pattern, value) is expected


def test_a_pattern_of_many_percent_signs_takes_no_time():
    assert not like("%a" * 200 + "%b", "a" * 5000)


def test_what_was_not_met_is_named_with_the_value():
    criteria = parse("coreCount > 1 AND (processingType = :p1 OR campaign IS NULL)", "p1:reco")
    values = {"coreCount": 1, "processingType": "simul", "campaign": "mc23"}
    assert sentence(criteria.unmet(values), values) == (
        "coreCount > 1 is false: coreCount is 1; processingType = 'reco' is false: processingType is 'simul'; "
        "campaign IS NULL is false: campaign is 'mc23'"
    )
    assert sentence(criteria.unmet({"coreCount": 8}), {"coreCount": 8}) == ""


TEXT = st.sampled_from(
    ["", "a", "A", "ab", "Ab%", "a_b", "b", "it's", "\\", "a\\b", "é", "É", "Zoë", "x:y", "10", "9", "%"]
)
NUMBER = st.integers(-3, 9) | st.sampled_from([10**15, -(10**15)])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _condition(name: str) -> st.SearchStrategy[str]:
    literal = NUMBER.map(str) if name in NUMBERS else TEXT.map(quoted)
    choices = [
        st.tuples(st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]), literal).map(" ".join),
        st.tuples(st.sampled_from(["IN", "NOT IN"]), st.lists(literal, min_size=1, max_size=3).map(", ".join)).map(
            lambda pair: f"{pair[0]} ({pair[1]})"
        ),
        st.sampled_from(["IS NULL", "IS NOT NULL"]),
    ]
    if name in TEXTS:
        pattern = st.lists(TEXT | st.just("%"), max_size=4).map("".join).map(quoted)
        choices.append(st.tuples(st.sampled_from(["LIKE", "NOT LIKE"]), pattern).map(" ".join))
    return st.one_of(choices).map(lambda rest: f"{name} {rest}")


CONDITION = st.sampled_from(sorted(ATTRIBUTES.values())).flatmap(_condition)
EXPRESSION = st.recursive(
    CONDITION,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR", "and"]), inner).map(lambda t: f"{t[0]} {t[1]} {t[2]}")
        | inner.map(lambda text: f"({text})")
        | inner.map(lambda text: f"NOT ({text})")
    ),
    max_leaves=8,
)
TASK = st.fixed_dictionaries(
    {name: st.none() | TEXT for name in TEXTS} | {name: st.none() | st.integers(-3, 9) for name in NUMBERS}
)


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expressions=st.lists(EXPRESSION, min_size=1, max_size=8), tasks=st.lists(TASK, min_size=1, max_size=6))
def test_predicate_and_filter_find_the_same_tasks(expressions, tasks):
    Task.objects.all().delete()
    Task.objects.bulk_create(
        Task(id=number, status="ready", user="ada", **{FIELDS[name]: value for name, value in task.items()})
        for number, task in enumerate(tasks)
    )
    for text in expressions:
        criteria = parse(text)
        expected = {number for number, task in enumerate(tasks) if criteria.matches(task)}
        assert set(Task.objects.filter(to_q(criteria, FIELDS)).values_list("id", flat=True)) == expected, text
        left = {number for number, task in enumerate(tasks) if criteria.unmet(task)}
        assert left == set(range(len(tasks))) - expected


@pytest.mark.django_db
def test_the_filter_of_no_criteria_is_every_task(make_task):
    make_task()
    assert Task.objects.filter(to_q(parse(None), FIELDS)).count() == 1


WORDS = ["site", "=", "NOT", "(", ")", "IN", "'a'", "1", ":p", "LIKE", "IS", "NULL", "AND", "OR", ","]


@given(text=st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text, "p:1").matches({})
    except ParseError as exc:
        assert 1 <= exc.position <= len(text) + 1
