"""DAGMan files that are refused, line by line."""

from __future__ import annotations

import pytest

from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.rules.dagman_file import read_dag


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        ("PARENT a CHILD b", "line 1", "No JOB line before declares 'a'"),
        ("JOB a.b x.sub", "line 1", "cannot name a node"),
        ("JOB parent x.sub", "line 1", "no word of DAGMan"),
        ("JOB a x.sub\njob a x.sub", "line 2", "declared twice"),
        ("JOB a x.sub NOOP", "line 1", "at most DONE"),
        ("JOB a x.sub\nPARENT a CHILD\n   a", "line 2", "all on one line"),
        ("JOB a x.sub\nRETRY a many", "line 2", "whole number"),
        ("JOB a x.sub\nVARS a k=v", "line 2", 'name="value"'),
        ("SPLICE s x.dag", "line 1", "not a command that is read here"),
        ("JOB a x.sub\nSCRIPT HOLD a y", "line 2", "PRE or POST"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, field: str, said: str) -> None:
    with pytest.raises(ParamErrors) as caught:
        read_dag(text)
    assert [error for error in caught.value.errors if error.field == field and said in error.message]


def test_a_product_of_too_many_parents_and_children_is_refused_before_it_is_made() -> None:
    jobs = "".join(f"JOB n{n} x.sub\n" for n in range(2000))
    names = " ".join(f"n{n}" for n in range(2000))
    with pytest.raises(ParamErrors, match="more than 200000 pairs"):
        read_dag(f"{jobs}PARENT {names} CHILD {names}")


def test_words_of_commands_are_read_in_any_case_and_comments_are_not() -> None:
    dag = read_dag('# c\n\njob a x.sub\nJob b y.sub done\nvars a k = "v \\"w\\"" l="2"\nparent a child b\n')
    assert dag.edges == {("a", "b")} and dag.nodes[0].variables == (("k", 'v "w"'), ("l", "2")) and dag.nodes[1].done
