"""No refusal without a code that says what it means and what would help: all rules, throttle rules and gates are walked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from brokerage_app.brokers import analysis_job, generic, production_rules, production_task
from brokerage_app.policy.throttle import JobCounts, Levels, Limit, Situation, ThrottleLimits, throttle
from brokerage_app.vocabulary import codes as brokerage_codes
from jedisite import refusals
from tasks_app.domain import attempt_refusal_codes, job_refusal_codes, refusal_codes
from tests.conftest import __file__ as conftest

ROOT = Path(conftest).parents[1]
MAKERS = {"Skip": 1, "Reason": 0}
"""Calls that make a refusal, with the place of the code among their arguments."""
SOURCES = [
    path
    for app in ("brokerage_app", "tasks_app")
    for path in sorted((ROOT / app).rglob("*.py"))
    if "migrations" not in path.parts
]


def constants() -> dict[str, str]:
    found = {}
    for module in (brokerage_codes, refusal_codes, job_refusal_codes, attempt_refusal_codes):
        found |= {name: value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    return found


@cache
def made() -> list[tuple[str, ast.expr]]:
    """Every call that makes a refusal: where it is, and the expression of its code."""
    return list(_made())


def _made() -> Iterator[tuple[str, ast.expr]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                place = MAKERS[node.func.id]
                given = [k.value for k in node.keywords if k.arg == "code"]
                if len(node.args) > place or given:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", given[0] if given else node.args[place]


def test_codes_are_never_written_as_texts() -> None:
    written = [where for where, code in made() if isinstance(code, ast.Constant)]
    assert not written
    assert len(made()) > 80, "the walk finds the refusals"


def test_codes_that_are_named_in_refusals_are_registered() -> None:
    known = constants()
    for where, code in made():
        if isinstance(code, ast.Attribute) and isinstance(code.value, ast.Name) and code.value.id == "codes":
            assert code.attr in known, where
            assert refusals.get(known[code.attr]).advice, where


def test_every_code_of_brokerage_is_used_somewhere() -> None:
    text = "\n".join(path.read_text() for path in SOURCES if "codes" not in path.parts)
    named = [name for name, value in vars(brokerage_codes).items() if name.isupper() and isinstance(value, str)]
    assert [name for name in named if not re.search(rf"\b{name}\b", text)] == []


def test_no_rule_is_asked_twice() -> None:
    groups = {
        "production": (*production_rules.RULES, *production_rules.FINAL),
        "analysis": analysis_job.RULES,
        "task": production_task.RULES,
        "generic": generic.ALL_RULES,
    }
    for broker, rules in groups.items():
        assert len({rule.filter for rule in rules}) == len(rules) > 5, broker


def test_every_rule_of_the_throttle_has_a_registered_code_and_numbers() -> None:
    jobs = JobCounts(running=10, not_running=5000, defined=5000, waiting=5000)
    limits = ThrottleLimits(queue_limit=Limit(100), queue_cap=Limit(100), running_cap=Limit(5))
    found = throttle(Situation("Q", jobs=Levels(jobs, jobs, jobs)), limits)
    assert len(found.rules) >= 6
    for rule in found.rules:
        assert refusals.get(rule.code).group == "throttle"
        assert any(letter.isdigit() for letter in rule.detail), rule
