"""Regular expressions that people write: one engine, which ends soon, whatever the pattern and the text."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jedisite.vocabulary.patterns import LONGEST, PatternError, compiled, fault_of

ROOT = Path(__file__).resolve().parents[3]
EVIL = ("(a+)+X", "(a|a)*X", "(a|aa)+X", "(.*a){12}X", "(?:a?){30}a{30}X", "((a+)*)*X", "(x+x+)+y", "(.*)*X")
"""Each of them takes minutes to ages with an engine that goes back over its steps."""


@pytest.mark.parametrize("pattern", EVIL)
def test_what_holds_other_engines_for_ages_is_answered_at_once(pattern: str) -> None:
    assert fault_of(pattern) == ""
    found = compiled(pattern)
    began = time.process_time()
    for text in ("a" * 60, "ax" * 2000):
        assert not found.search(text) and not found.match(text) and not found.fullmatch(text)
    assert time.process_time() - began < 1
    assert found.search("a" * 60 + "X") or found.search("xxxxy")


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "x86_64-centos7-gcc8-opt",
        ".*(P100|V100).*",
        r"a\(b\)*",
        "[]*+]+",
        "[^]+*]",
        "(?:a|b)c?",
        "a{2,5}b",
        "a{x}",
        "(?i)A",
        r"exit code \d+$",
        "(?P<code>[0-9]+)",
        "a*?b",
        r"\bX\b",
        "[{,3}]",
        r"\{,3}",
        "é+",
        "a" * LONGEST,
        "[^x]{100}",
    ],
)
def test_usual_patterns_are_taken(pattern: str) -> None:
    assert fault_of(pattern) == ""
    assert compiled(pattern).text == pattern


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("x86_64-(", "'x86_64-(' is not a regular expression: missing )"),
        ("*", "not a regular expression"),
        ("[z-a]x", "invalid character class range at 'z-a'"),
        ("a**", "not a regular expression"),
        ("(?=a)b", "'(?=a)b' looks ahead or behind with (?="),
        ("(?<!a)b", "looks ahead or behind with (?<!"),
        (r"(a)\1", "refers back to a group"),
        ("(?P<x>a)(?P=x)", "refers back to a group"),
        (r"a\Z", r"write \z for the end"),
        ("ba{,3}", "has {,3} in it: write {0,3}"),
        ("((a?){100}){100}", "not a regular expression: invalid repetition size"),
        ("((((a?){10}){10}){10})", "repeats too much: 2004 steps"),
        (".{1000}", "repeats too much"),
        ("\ud800", "half of a surrogate pair"),
        ("x" * (LONGEST + 1), "513 characters and 512 are allowed"),
    ],
)
def test_what_is_not_taken_is_refused_with_a_sentence(
    pattern: str, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert says in fault_of(pattern)
    with pytest.raises(PatternError):
        compiled(pattern)
    assert capfd.readouterr() == ("", ""), "the engine must not write to the log by itself"


def test_a_match_is_of_a_part_of_the_start_or_of_the_whole() -> None:
    found = compiled("b|ab")
    assert [found.search(t) for t in ("xb", "abx", "ab", "a")] == [True, True, True, False]
    assert [found.match(t) for t in ("xb", "abx", "ab", "a")] == [False, True, True, False]
    assert [found.fullmatch(t) for t in ("xb", "abx", "ab", "a")] == [False, False, True, False]
    assert compiled("nvidia", ignore_case=True).match("NVIDIA Corporation") and not compiled("nvidia").match("NVIDIA")
    assert compiled("a.b", across_lines=True).match("a\nb") and not compiled("a.b").match("a\nb")
    assert compiled(r"^a\.\w+$").search("a.b_c") and not compiled("a$").search("a\n")
    assert compiled("é.x").fullmatch("éüx") and not compiled("a").search("\ud800")


pieces = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            ".",
            "*",
            "+",
            "?",
            "(",
            ")",
            "(?:",
            "|",
            "[ab]",
            "{2,}",
            "{30}",
            "\\",
            "^",
            "$",
            "[",
            "]",
            "(?=",
            r"\1",
        ]
    ),
    max_size=14,
).map("".join)


@given(pattern=pieces, text=st.text(alphabet="ab", max_size=256))
def test_whatever_the_pattern_a_match_ends_soon(pattern: str, text: str) -> None:
    if not fault_of(pattern):
        began = time.process_time()
        compiled(pattern).fullmatch(text + "!")
        assert time.process_time() - began < 0.5


@given(pattern=st.text(max_size=30), text=st.text())
def test_no_pattern_and_no_text_raises_anything_else(pattern: str, text: str) -> None:
    try:
        compiled(pattern).search(text)
    except PatternError as exc:
        assert str(exc) == fault_of(pattern)
    else:
        assert fault_of(pattern) == ""


OURS = {
    ("brokerage_app/formulas/architecture.py", 'f"[{others}]"'),
    ("tasks_app/params/kinds.py", "self.pattern"),
    ("tasks_app/refining/layout.py", 'rf"(?<![\\w.-]){name}(?![\\w.-])"'),
    ("tasks_app/labs/bench/page_addresses.py", 'rf"<[^<>]*\\b{argument}>"'),
}
"""Patterns that are put together of pieces of our own code or, in `layout`, of text that is escaped."""
FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
IN_STATEMENTS = (" ~ %", " ~* %", " !~ %", " SIMILAR TO %", "regexp_match(%", "regexp_replace(%")
"""What a pattern that is passed to a statement would stand behind."""


def sources() -> Iterator[tuple[str, str, ast.AST]]:
    """Every piece of the code, with its file and that file's text."""
    for app in ("jedisite", "brokerage_app", "tasks_app", "events_app"):
        for path in sorted((ROOT / app).rglob("*.py")):
            name, text = str(path.relative_to(ROOT)), path.read_text()
            for node in ast.walk(ast.parse(text)):
                yield name, text, node


def is_constant(node: ast.expr) -> bool:
    """A text, a name in capitals, one of two of these, or a text that is put together of them."""
    if isinstance(node, ast.IfExp):
        return is_constant(node.body) and is_constant(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return all(is_constant(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return is_constant(node.value)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def test_what_is_not_written_in_the_code_goes_to_the_engine_that_cannot_stall() -> None:
    """`re` and the database go back over their steps: they get constant patterns only."""
    found = set()
    for name, text, node in sources():
        match node:
            case ast.ImportFrom(module="re" | "re2" | "regex"):
                pytest.fail(f"{name}: patterns are compiled in jedisite.vocabulary.patterns")
            case ast.Import(names=names) if {one.name for one in names} & {"re2", "regex"}:
                assert name == "jedisite/vocabulary/patterns.py", (
                    f"{name}: patterns are compiled in jedisite.vocabulary.patterns"
                )
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=called), args=[pattern, *_]):
                if called in FUNCTIONS and not is_constant(pattern):
                    found.add((name, ast.get_source_segment(text, pattern)))
            case ast.keyword(arg=str(lookup), value=value) if lookup.endswith("regex"):
                assert is_constant(value), f"{name}:{value.lineno}: a lookup with a pattern"
            case ast.Constant(value=str(said)):
                assert not said.endswith("__regex") and not said.endswith("__iregex"), f"{name}:{node.lineno}"
                assert not any(sign in said for sign in IN_STATEMENTS), (
                    f"{name}:{node.lineno}: a pattern in a statement"
                )
    assert found == OURS
