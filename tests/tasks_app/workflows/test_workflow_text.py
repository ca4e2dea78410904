"""The compact text that a person writes."""

from __future__ import annotations

import pytest

from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.rules.definition import Acquisition, Keep
from tasks_app.workflows.rules.definition_files import read_definition, told_by_line
from tasks_app.workflows.submitting_workflows import check_submittable

HEAD = "job j\nstage\nline\nbinary A\n"


def faults(text: str) -> dict[str, str]:
    with pytest.raises(ParamErrors) as caught:
        read_definition(text)
    return {error.field: error.message for error in caught.value.errors}


def test_each_word_has_its_place_in_the_records() -> None:
    definition, _ = read_definition(
        """# a comment
        job j
        originator "Ada L <ada@x.org>"
        priority -5
        hold yes
        restart missing output 3
        stage 1
        line 1
        package 1 nodes n1 n2 not n3 quiet
        script run-all -v
        binary A version 1.2 sam cpu 20 work 7 time 60
        run a.sh  'x y' # z
        in r1 r2 pre-fetch temporary from lab.raw size 9
        in s self
        out o1 o2 store deletable
        out p local
        binary B
        in o1
        """
    )
    assert (definition.originator, definition.priority, definition.hold) == ("Ada L <ada@x.org>", -5, True)
    assert definition.restarts == {"missing output": 3}
    package = definition.stages[0].lines[0].packages[0]
    assert (package.nodes, package.not_nodes, package.notify, package.script) == (
        ("n1", "n2"),
        ("n3",),
        False,
        "run-all -v",
    )
    first = package.binaries[0]
    assert (first.version, first.sam, first.cpu_percent, first.work_mb, first.run_time_s) == ("1.2", True, 20, 7, 60)
    assert first.run == "a.sh  'x y' # z"
    assert [(f.name, f.acquisition, f.keep, f.dataset, f.size_mb) for f in first.inputs] == [
        ("r1", Acquisition.PREFETCH, Keep.TEMPORARY, "lab.raw", 9),
        ("r2", Acquisition.PREFETCH, Keep.TEMPORARY, "lab.raw", 9),
        ("s", Acquisition.SELF, Keep.DELETABLE, "", 0),
    ]
    assert [(f.name, f.store, f.forward, f.keep) for f in first.outputs] == [
        ("o1", True, True, Keep.DELETABLE),
        ("o2", True, True, Keep.DELETABLE),
        ("p", False, False, Keep.RETAIN),
    ]


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("", "line 1", "begins with `job NAME`"),
        ("job j\nsatge", "line 2", "Did you mean stage?"),
        ("job j\nline", "line 2", "A line stands in a stage"),
        ("job j\nstage\nbinary A", "line 3", "A binary stands in a package"),
        ("job j\nstage 2\nline\nbinary A", "line 2", "stage 1 is missing"),
        (HEAD + " in x", "line 5", "No package writes 'x'"),
        (HEAD + " in x from d y", "line 5", "before what holds for them"),
        (HEAD + ' in "x', "line 5", "quotation"),
        (HEAD + "run a\nrun b", "line 6", "has its run already"),
        (HEAD + "in x from d\n\nrepeat i 1..2\nout y{i}", "line 7", "Its `end` is missing"),
        (HEAD + "repeat i 2..1\nend", "line 5", "is empty"),
        (HEAD + "repeat i 1..999999\nrun\nout y{i}\nend", "line 5", "more than 200000 lines"),
        (HEAD + "repeat i 1..1000000000\nend", "line 5", "1000000000 is too large"),
        (HEAD + "repeat i 1..2\nrepeat k 1..2\nend", "line 6", "repeats stand in no other"),
        (HEAD + "end", "line 5", "no repeat"),
        ("job j\nrestart looping\nstage\nline\nbinary A", "line 2", "restart REASON NUMBER"),
        ("job j\njob k\nstage\nline\nbinary A", "line 2", "has its name already"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, field: str, said: str) -> None:
    found = faults(text)
    assert field in found and said in found[field]


def test_a_repeat_that_is_wrong_is_one_fault() -> None:
    for wrong in ("repeat i 1..1000000000", "repeat i 1-3"):
        assert list(faults(f"job j\nstage\nline\nbinary A\n{wrong}\nout x{{i}}\nend")) == ["line 5"]


def test_what_cannot_run_here_is_told_by_line() -> None:
    text = "job j\nrestart loops 1\nstage\nline\nbinary A sam"
    with pytest.raises(ParamErrors) as caught, told_by_line(text):
        check_submittable(read_definition(text)[0], None)
    assert {error.field for error in caught.value.errors} == {"line 2", "line 5"}


def test_faults_of_repeats_stand_on_the_line_that_was_written() -> None:
    found = faults("job j\nstage\nrepeat i 1..2\nline\nbinary A\nin x{i}\nend")
    assert list(found) == ["line 6"]


ONE = "line\nbinary {}\nrun x\n{}"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("stage\n" + ONE.format("A", "out x\n") + ONE.format("B", "out x\n"), 10, "'x' is written by line 6 as well"),
        ("stage\nrepeat i 1..2\n" + ONE.format("A", "out x\nend"), 7, "'x' is written by another round of its repeat"),
        ("stage\n" + ONE.format("A", "out x x\n"), 6, "'x' is an output of this binary already"),
        (
            "stage\n" + ONE.format("A", "out x local\n") + ONE.format("B", "in x\nout y\n"),
            6,
            "'x' is read at line 10 and not forwarded: set forward, or leave out local.",
        ),
        (
            "stage\n" + ONE.format("A", "in b\nout a\n") + ONE.format("B", "in a\nout b\n"),
            6,
            "001/001/001 → 001/002/001 (reads a at line 11) → 001/001/001 (reads b at this line).",
        ),
        (
            "stage\nline\npackage\nbinary A\nrun x\nin b\npackage\nbinary B\nrun x\nout b",
            7,
            "001/001/002 (comes after it in its line, at line 8) → 001/001/001 (reads b at this line).",
        ),
        (
            "stage\n" + ONE.format("A", "out a\n") + ONE.format("B", "in a from lab.a\n"),
            10,
            "'a' is written by line 6, so it comes from there",
        ),
    ],
)
def test_a_fault_that_names_other_records_names_their_lines(text: str, line: int, said: str) -> None:
    found = faults("job j\n" + text)
    assert list(found) == [f"line {line}"] and said in found[f"line {line}"], found
    assert "stages[" not in found[f"line {line}"]
