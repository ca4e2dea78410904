"""Each reason that a rule may give has its place in the order of its broker."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

from brokerage_app.brokers import analysis_rules, generic, production_rules, production_task
from brokerage_app.brokers.funnel import ANALYSIS, GENERIC, NO_CANDIDATES, NUCLEI, PRODUCTION, order_of
from brokerage_app.filters import data, resources
from brokerage_app.vocabulary import codes
from jedisite import refusals

PRODUCTION_RULES = (*production_rules.RULES, production_rules.MISSING, *production_rules.FINAL)


def codes_of(rule: Callable[..., Any]) -> set[str]:
    """The codes that a rule names, and the functions that it calls, as far as they stand in `brokerage_app`."""
    found: set[str] = set()
    left, seen = [rule], set[object]()
    while left:
        one = left.pop()
        if one in seen or not one.__module__.startswith("brokerage_app."):
            continue
        seen.add(one)
        for value in _named(one):
            if isinstance(value, str):
                found.add(value)
            elif isinstance(value, dict):
                found.update(value.values())
            else:
                left.append(value)
    return found


def _named(function: Callable[..., Any]) -> Iterator[Any]:
    """Constants of `codes`, tables of them, and functions that the text of a function names."""
    assert isinstance(function, FunctionType)
    space = function.__globals__
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            of = space.get(node.value.id)
            value = getattr(of, node.attr, None) if isinstance(of, ModuleType) else None
            if of is codes or isinstance(value, FunctionType):
                yield value
        elif isinstance(node, ast.Name):
            value = space.get(node.id)
            is_table = isinstance(value, dict) and all(one in refusals.all_codes() for one in value.values())
            if isinstance(value, FunctionType) or is_table:
                yield value


def test_the_codes_of_a_rule_are_found_wherever_it_takes_them_from() -> None:
    assert codes_of(resources.memory) == {codes.LOW_MEMORY, codes.HIGH_MEMORY}
    assert codes_of(data.storage_up) >= {codes.INPUT_NOT_READABLE, codes.OUTPUT_NOT_WRITABLE}
    assert codes.SITE_PAUSED in codes_of(production_rules.RULES[0].filter)


@pytest.mark.parametrize(
    ("broker", "kind", "rules"),
    [
        (PRODUCTION, "job", PRODUCTION_RULES),
        (ANALYSIS, "job", analysis_rules.RULES),
        (GENERIC, "job", generic.ALL_RULES),
        ("", NUCLEI, production_task.RULES),
    ],
)
def test_each_reason_that_a_rule_gives_has_its_place(broker: str, kind: str, rules: Iterable[Any]) -> None:
    """One without a place would count as asked first, and funnels and sentences would name another rule as the last."""
    order = order_of(broker, kind)
    given = {rule.filter.__name__: codes_of(rule.filter) for rule in rules}
    assert all(given.values()), "each rule has a code"
    missing = {name: sorted(some - set(order) - NO_CANDIDATES) for name, some in given.items()}
    assert {name: some for name, some in missing.items() if some} == {}


@pytest.mark.parametrize(("broker", "kind"), [(PRODUCTION, "job"), (ANALYSIS, "job"), (GENERIC, "job"), ("", NUCLEI)])
def test_no_reason_stands_in_the_order_twice(broker: str, kind: str) -> None:
    order = order_of(broker, kind)
    assert list(order.values()) == list(range(1, len(order) + 1))


@pytest.mark.parametrize(
    ("broker", "rules"),
    [(PRODUCTION, PRODUCTION_RULES), (ANALYSIS, analysis_rules.RULES), (GENERIC, generic.ALL_RULES)],
)
def test_reasons_stand_where_their_rules_are_asked(broker: str, rules: Iterable[Any]) -> None:
    """Sentences name the last one as what a queue fails at. Those that several rules give stand with one of these."""
    order = order_of(broker)
    given = {rule.filter.__name__: codes_of(rule.filter) & set(order) for rule in rules}
    times = Counter(code for some in given.values() for code in some)
    of_one = [(name, sorted(order[code] for code in some if times[code] == 1)) for name, some in given.items()]
    places = [(place, name) for name, some in of_one for place in some]
    assert [name for _, name in sorted(places)] == [name for _, name in places]
