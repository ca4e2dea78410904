from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks_app.params.arithmetic import BadFormula, compile_formula, result_text
from tasks_app.params.filelists import compact
from tasks_app.params.placeholders import (
    BadTemplate,
    UnresolvedPlaceholder,
    compile_template,
    is_ours,
    names_in,
)

STREAMS = {
    "IN": ["f._000003.root", "f._000001.root", "f._000002.root"],
    "DBR": ["release-1.tgz"],
    "B": ["b%201.txt", "a.txt"],
    "SEQNUMBER": ["17"],
    "OUTPUT0": ["out._000042.root"],
    "LOG0": ["log._000042.tgz"],
    "EMPTY": [],
}
VALUES: dict[str, str | int] = {
    "SN": 42,
    "RNDMSEED": 205,
    "MAXEVENTS": -1,
    "SKIPEVENTS": 0,
    "FIRSTEVENT": 1001,
    "SURL": "https://c:443",
    "ATTEMPTNR": 2,
    "MIDDLENAME": ".mid",
    "JEDITASKID": 7,
    "PANDAID": 900,
}


def render(text: str) -> str:
    return compile_template(text).render(STREAMS, VALUES)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("no placeholder", "no placeholder"),
        ("", ""),
        ("--in=${IN}", "--in=f._[000001,000002,000003].root"),
        ("${DBR}", "release-1.tgz"),
        ("${B}", "a.txt,b%201.txt"),
        ("${IN/L}", "f._000001.root,f._000002.root,f._000003.root"),
        ("${DBR/A}", "'release-1.tgz'"),
        ("${B/A}", "'a.txt','b%201.txt'"),
        ("${B/S}", "a.txt b%201.txt"),
        ("${B/T}", "['a.txt', 'b%201.txt']"),
        ("${DBR/T}", "['release-1.tgz']"),
        ("${B/E}", "a.txt,b 1.txt"),
        ("${IN/F}", "tmpin_IN"),
        ("${IN[0:2]/L}", "f._000001.root,f._000002.root"),
        ("${IN[2:]}", "f._000003.root"),
        ("${IN[:1]}", "f._000001.root"),
        ("${IN,DBR/L}", "f._000001.root,f._000002.root,f._000003.root,release-1.tgz"),
        ("${SEQNUMBER}", "17"),
        ("${SEQNUMBER/M[#*100+1]}", "1701"),
        ("${SEQNUMBER/M[10/(#//17)]}", "10"),
        ("${SKIPEVENTS/M[# - (3 - 5)]}", "2"),
        ("${SN}-${SN/P}", "42-000042"),
        ("${RNDMSEED} ${MAXEVENTS} ${SKIPEVENTS} ${FIRSTEVENT}", "205 -1 0 1001"),
        ("${SURL} ${ATTEMPTNR}${MIDDLENAME}", "https://c:443 2.mid"),
        ("${OUTPUT0} ${LOG0}", "out._000042.root log._000042.tgz"),
        ("$JEDITASKID.$PANDAID.$HOME.$JEDITASKIDS", "7.900.$HOME.$JEDITASKIDS"),
        ("a ${IN/L} b ${IN[0:1]} c", "a f._000001.root,f._000002.root,f._000003.root b f._000001.root c"),
    ],
)
def test_placeholders_become_what_the_job_has(text: str, wanted: str) -> None:
    assert render(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "${IN_2}",
        "${EMPTY}",
        "${IN,EMPTY}",
        "${LIB}",
        "${OUTPUT1}",
        "${IN[5:9]}",
        "${IN/M[#+1]}",
        "${DBR/M[#+1]}",
        "${SEQNUMBER/M[1/(#-17)]}",
        "$JOBSETID",
        "${WHATEVER}",
    ],
)
def test_a_job_is_not_made_with_a_hole_in_its_command_line(text: str) -> None:
    with pytest.raises(UnresolvedPlaceholder) as caught:
        render(f"before {text} after")
    assert caught.value.name and caught.value.name in text


BAD = "${IN/Q} ${IN[a:b]} ${IN/M[#**9]} ${IN/M[open()]} ${} ${IN-1} ${SN/M[#/0]} ${IN/M[#%(2-2)]}"


@pytest.mark.parametrize("text", BAD.split())
def test_a_template_that_suits_no_job_is_refused_at_once(text: str) -> None:
    with pytest.raises(BadTemplate):
        compile_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "${p#/proc/}",
        "${file%.txt}",
        "${x:-${IN}}",
        "${#IN}",
        "${!x}",
        "${names[@]}",
        "${a/b/c}",
        "${x^^}",
        "${SN_1:99}",
        "${}",
    ],
)
def test_what_the_shell_makes_of_its_own_names_is_left_alone(text: str) -> None:
    filled = compile_template(f"a {text} b", streams={"IN"}).render({"IN": ["f"]}, {"SN": 1})
    assert filled == f"a {text.replace('${IN}', 'f')} b"


@pytest.mark.parametrize(
    "text",
    [
        "${SN/9999}",
        "${SN:99}",
        "${SN:}",
        "${IN%.txt}",
        "${IN-1}",
        "${IN[0]}",
        "${OUTPUT0##*/}",
        "${DBR#x}",
        "${LIB/lib/L}",
        "${SURL:-x}",
        "${IN/Q}",
        "${SEQNUMBER/M[#+]}",
        "${A,IN%x}",
    ],
)
def test_a_name_of_ours_that_goes_on_as_no_placeholder_does_is_refused(text: str) -> None:
    with pytest.raises(BadTemplate, match=r"not a placeholder|not a width|not a list format|not arithmetic"):
        compile_template(f"a {text} b", streams={"IN", "DBR"})


@pytest.mark.parametrize(("text", "wanted"), [("${SN:04d}", "0042"), ("${SN:d}", "42"), ("${SN:%09d}", "000000042")])
def test_a_serial_number_has_the_width_that_is_asked_for(text: str, wanted: str) -> None:
    assert compile_template(text, streams=()).render({}, VALUES) == wanted
    with pytest.raises(UnresolvedPlaceholder):
        compile_template(text, streams=()).render({}, {})


def test_what_nobody_knows_is_left_alone_when_the_streams_are_known() -> None:
    template = compile_template("${HOME} ${VAR:-x/y} ${IN} ${B}", streams={"IN", "B"})
    assert template.names == {"IN", "B"}
    assert template.render({"IN": ["f"], "B": ["g"]}, {}) == "${HOME} ${VAR:-x/y} f g"


def test_names_of_ours_must_be_filled_even_when_the_streams_are_known() -> None:
    with pytest.raises(UnresolvedPlaceholder):
        compile_template("${IN_2}", streams={"IN"}).render({"IN": ["f"]}, {})


def test_values_are_not_searched_for_placeholders() -> None:
    assert compile_template("${SURL} ${IN}").render({"IN": ["${SN}"]}, {"SURL": "${IN}", "SN": 1}) == "${IN} ${SN}"


def test_files_are_sorted_and_listed_once_unless_order_matters() -> None:
    streams = {"IN": ["b", "a", "b"]}
    assert compile_template("${IN/L}").render(streams, {}) == "a,b"
    assert compile_template("${IN/L}", keep_order=True).render(streams, {}) == "b,a,b"


def test_merge_groups_pair_inputs_with_their_output() -> None:
    streams = {"TRN_OUTPUT1": ["c"], "TRN_OUTPUT0": ["a", "b"], "TRN_OUTPUT2": [], "OUTPUT0": ["x"], "OUTPUT1": ["y"]}
    assert compile_template("${TRN_OUTPUT:OUTPUT}").render(streams, {}) == "a,b:x c:y"
    with pytest.raises(UnresolvedPlaceholder):
        compile_template("${TRN_OUTPUT:OUTPUT}").render({"TRN_OUTPUT0": ["a"]}, {})


def test_names_in_a_text_are_found_once_and_in_order() -> None:
    assert names_in("${IN/T} $PANDAID ${A,B[0:1]} ${IN} ${HOME}") == ["IN", "PANDAID", "A", "B", "HOME"]


def test_names_of_ours() -> None:
    assert all(map(is_ours, ["IN", "IN_X", "SN", "OUTPUT0", "TRN_LOG1", "SEQNUMBER", "LOG_MERGE"]))
    assert not any(map(is_ours, ["INPUT", "HOME", "OUTPUT", "DBR"]))


# --- lists of names ---


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ([], ""),
        (["a.1"], "a.1"),
        (["a1.x", "a2.x"], "a[1,2].x"),
        (["a9.x", "a10.x"], "a[9,10].x"),
        (["a1.x.1", "a2.x.1"], "a[1,2].x.1"),
        (["a1.x.1", "a2.x.2"], "a1.x.1,a2.x.2"),
        (["1", "2"], "[1,2]"),
        (["a", "b"], "a,b"),
        (["a", "a1"], "a,a1"),
        (["a1", "a1b"], "a1,a1b"),
        (["a1b2", "a3b4"], "a1b2,a3b4"),
    ],
)
def test_names_that_differ_in_one_number_are_written_short(names: list[str], wanted: str) -> None:
    assert compact(names) == wanted


@given(st.lists(st.text(alphabet="ab01.", min_size=1, max_size=6), min_size=1, max_size=6))
def test_a_short_list_expands_to_the_names(names: list[str]) -> None:
    text = compact(names)
    short = re.fullmatch(r"([^\[]*)\[(.*)\](.*)", text)
    expanded = [f"{short[1]}{middle}{short[3]}" for middle in short[2].split(",")] if short else text.split(",")
    assert expanded == names


@given(st.lists(st.text(max_size=6), min_size=1, max_size=6))
def test_a_printed_list_can_be_read_back(names: list[str]) -> None:
    template = compile_template("${IN/T}", keep_order=True)
    assert ast.literal_eval(template.render({"IN": names}, {})) == names


# --- arithmetic ---


@given(a=st.integers(-50, 50), b=st.integers(1, 50), value=st.integers(0, 10**6))
def test_formulas_compute_what_is_written(a: int, b: int, value: int) -> None:
    assert compile_formula(f"(#+{a})*{b} - # // {b} + -#%{b}")(value) == (value + a) * b - value // b + -value % b


@pytest.mark.parametrize(
    "text", ["", "#**2", "x", "value", "#+", "f(#)", "#.real", "'a'", "#<1", "1 if # else 2", "[#]", "#" * 201]
)
def test_anything_but_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(BadFormula):
        compile_formula(text)


@given(st.text(max_size=30))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        compile_formula(text)
    except BadFormula as refused:
        assert str(refused)


def test_whole_results_have_no_point() -> None:
    assert (result_text(6 / 2), result_text(7), result_text(2.5)) == ("3", "7", "2.5")
