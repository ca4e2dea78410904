"""Patterns of retry rules: what is refused, and that what is taken is quick for texts made against it."""

from __future__ import annotations

import re
import time

import pytest

from tasks_app.accounting.patterns import LONGEST, trouble
from tasks_app.accounting.retry_rules import LONGEST_DIAGNOSIS

GOOD = (
    "", "timeout", ".*timeout.*", "^Job killed by signal (9|15)", r"exit code \d+$", r"(\d+\.)+\d+ GB", r"(\w+ )*died",
    "a{3}b{2,5}c?", ".*a.*a.*ab.*", "(?i)no (space|room) left on .*", "[^:]*: [a-z ]+: disk", "(?:x|y|z)*+w", "(a|b)*c",
)  # fmt: skip
BAD = {
    "(": "not a regular expression: missing )",
    "[z-a]": "bad character range",
    "x" * (LONGEST + 1): "512 characters at most; this has 513",
    "(a+)+b": "contains another one",
    "(.*,)*x": "contains another one",
    "(ab|a)*c": "or alternatives",
    "(a?){40}b": "contains another one, or alternatives",
    "((a{1,9}){1,9})x": "contains another one",
    "(a|b+)*c": "contains another one",
    r"(.+)\1x": "refers back to a group",
    ".*a.*a.*a.*ab": "has 4 open-ended repetitions",
    "(.*a){5}b": "has 5 open-ended repetitions",
    "a?" * 12 + "b": "has 11 optional pieces",
    "(?=(a+)+b)a": "contains another one",
}


@pytest.mark.parametrize("pattern", GOOD)
def test_what_is_taken_is_quick_whatever_the_text(pattern: str) -> None:
    assert trouble(pattern) == ""
    started = time.process_time()
    for text in ("a" * 4000, "ab" * 2000, "timeout" * 500, "1." * 2000, "x y " * 1000):
        re.match(pattern, text[:LONGEST_DIAGNOSIS], re.DOTALL)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("pattern", BAD)
def test_what_could_take_for_ever_is_refused_with_a_sentence(pattern: str) -> None:
    assert BAD[pattern] in trouble(pattern)
