import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokerage_app.patterns import LONGEST, PatternError, compiled, fault_of, fully_matches, starts_with


@pytest.mark.parametrize(
    "pattern",
    [
        "", "x86_64-centos7-gcc8-opt", ".*(P100|V100).*", "(x86_64|aarch64)", "x86_64-.*-gcc1[0-9]+-opt", r"a\(b\)*",
        "[]*+]+", "[^]+*]",
        "(?:a|b)c?", ".*(P100|V100|A100|H100|T4).*", "x86_64-.*-gcc.*-.*",
        "a{2,5}b", "(ab)+", "gcc8+", r"\*+", "a{x}",
    ],
)  # fmt: skip
def test_usual_patterns_are_usable(pattern: str) -> None:
    assert fault_of(pattern) == ""
    assert compiled(pattern).pattern == pattern


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("x86_64-(", "not a regular expression"),
        ("*", "not a regular expression"),
        ("(a+)+b", "repeats what may match"),
        ("(a|a)*b", "repeats what may match"),
        ("((ab?))*", "repeats what may match"),
        ("(a?){30}", "repeats what may match"),
        (".*.*.*.*.*x", "could match in"),
        ("a?" * 20, "could match in 1048576 ways"),
        ("(a|aa)" * 20, "could match in"),
        (r"(a)\1", "refers back"),
        ("(?=a)", "has a group"),
        ("(?i)a", "has a group"),
        ("a{1000}", "counts to more than 100"),
        ("x" * (LONGEST + 1), "257 characters"),
    ],
)
def test_patterns_that_could_crash_or_stall_are_refused_with_a_sentence(pattern: str, says: str) -> None:
    assert says in fault_of(pattern)
    with pytest.raises(PatternError, match=re.escape(says)):
        compiled(pattern)


def test_a_match_is_of_the_whole_text_or_from_its_start() -> None:
    assert fully_matches("x86_64|aarch64", "aarch64") and not fully_matches("x86|aarch64", "x86_64")
    assert starts_with("nvidia", "NVIDIA Corporation") and not starts_with("idia", "NVIDIA")


pieces = st.lists(
    st.sampled_from(
        ["a", "b", ".", "*", "+", "?", "(", ")", "(?:", "|", "[ab]", "{2,}", "{3}", "\\", "^", "$", "[", "]"]
    ),
    max_size=14,
).map("".join)


@given(pattern=pieces, text=st.text(alphabet="ab", max_size=64))
def test_whatever_the_pattern_a_match_ends_soon(pattern: str, text: str) -> None:
    if fault_of(pattern):
        return
    began = time.process_time()
    compiled(pattern).fullmatch(text + "!")
    assert time.process_time() - began < 2


@given(pattern=st.text(max_size=30))
def test_no_pattern_raises_anything_else(pattern: str) -> None:
    try:
        fully_matches(pattern, "x86_64-centos7-gcc8-opt")
    except PatternError as exc:
        assert str(exc) == fault_of(pattern)
    else:
        assert fault_of(pattern) == ""
