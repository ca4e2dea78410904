"""`manage.py workflow`: check and schema."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tasks_app.models import Workflow
from tasks_app.workflows.rules.dagman_file import read_dag

CASE_IV = Path(__file__).parent / "samples/case_iv.txt"


def run(*words: str) -> str:
    out = StringIO()
    call_command("workflow", *words, stdout=out)
    return out.getvalue()


def test_check_shows_the_graph_as_table_and_drawing_and_writes_it_for_dagman(tmp_path: Path) -> None:
    said = run("check", str(CASE_IV), "--dagman", str(tmp_path / "reco.dag"))
    assert "002/005/001  store     reco2_1, reco2_2" in said
    assert "├─▶ 002/005/001 store  (reco2_1, reco2_2)" in said
    assert "reco001: 12 packages, 9 dependencies, 2 deep" in said
    with pytest.raises(CommandError, match=r"cannot run it as it is:\nline 11: No site here has a SAM station"):
        run("check", str(CASE_IV))
    dag = read_dag((tmp_path / "reco.dag").read_text())
    assert (len(dag.nodes), len(dag.edges)) == (12, 9)


def test_check_says_every_fault_with_its_line(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.txt"
    wrong.write_text("job j\nstage\nline\nbinary A\nin x\nout y\nline\nbinary A\nout y")
    with pytest.raises(CommandError) as caught:
        run("check", str(wrong))
    assert [said.partition(":")[0] for said in str(caught.value).splitlines()] == ["line 9", "line 5"]
    with pytest.raises(CommandError, match="cannot be read"):
        run("check", str(tmp_path / "nothing"))


def test_the_schema_has_every_record_and_refuses_what_is_no_field() -> None:
    schema = json.loads(run("schema"))
    assert set(schema["$defs"]) == {"stage", "line", "package", "binary", "input", "output"}
    assert schema["required"] == ["name", "stages"] and schema["additionalProperties"] is False


@pytest.mark.django_db
def test_a_workflow_on_hold_says_that_it_begins_and_what_is_refused_has_its_line(
    tmp_path: Path, make_user: Callable[..., Any]
) -> None:
    make_user("ada")
    file = tmp_path / "pair.txt"
    file.write_text(PAIR.replace("job pair", "job pair\nhold"))
    number = run("submit", str(file), "--user", "ada").strip()
    for more in ((), ("--preview",)):
        assert (
            run("do", number, "kill", "--user", "ada", "--preview") == "kill: the workflow never begins: 3 packages\n"
        )
        assert run("do", number, "resume", "--user", "ada", "--preview", *more).startswith(
            "resume: the workflow begins"
        )
    file.write_text(
        PAIR.replace("in a c", "in a c\nin x from lab.no\nin y from lab.no").replace(
            "binary B", "package nodes N9\nbinary B"
        )
    )
    for act in ("submit", "check"):
        with pytest.raises(CommandError, match=r"line 17: There is no dataset lab\.no") as caught:
            run(act, str(file), "--user", "ada")
        assert len([line for line in str(caught.value).splitlines() if line.startswith("line")]) == 1
    file.write_text(PAIR.replace("binary B", "package nodes N9\nbinary B"))
    with pytest.raises(CommandError, match=r"^line 13: "):
        run("submit", str(file), "--user", "ada")


PAIR = "job pair\nstage\nline\nbinary A\nrun a\nout a\nline\nbinary A\nrun c\nout c\nstage\nline\nbinary B\nrun b\nin a c\nout b"


@pytest.mark.django_db
def test_a_workflow_is_submitted_shown_and_commanded(tmp_path: Path, make_user: Callable[..., Any]) -> None:
    make_user("ada")
    (tmp_path / "pair.txt").write_text(PAIR)
    number = run("submit", str(tmp_path / "pair.txt"), "--user", "ada").strip()
    assert "pair of ada: 3 unscheduled" in run("show", number)
    said = run("do", number, "drop", "--line", "001/002", "--user", "ada", "--preview")
    assert said == "would be canceled: 001/002/001\n002/001/001 would go on without c\n"
    run("do", number, "drop", "--line", "001/002", "--user", "ada")
    assert "pair of ada: 1 canceled, 2 unscheduled" in run("show", number)
    assert run("do", number, "hold", "--user", "ada", "--stage", "2").startswith("hold: 1 task: ")
    held = run("do", number, "hold", "--user", "ada", "--line", "001/001", "--preview")
    assert held.endswith("packages: 001/001/001\n")
    for words, why in (
        (("do", number, "drop", "--user", "ada"), "give --line"),
        (("do", number, "retry", "--line", "001/001", "--user", "ada"), "None of these packages has failed"),
        (("do", "99", "kill", "--user", "ada"), "There is no workflow 99"),
        (("do", number, "hold", "--user", "adda"), "there is no user adda"),
        (("do", number, "hold", "--user", "ada", "--stage", "7"), "no stage 7"),
        (("do", number, "resume", "--user", "ada", "--line", "001/001"), "on hold by itself"),
        (("do", number, "kill", "--user", "ada", "--line", "001/001", "--stage", "1"), "one of --stage"),
        (("show", "99"), "There is no workflow 99"),
    ):
        with pytest.raises(CommandError, match=why):
            run(*words)


@pytest.mark.django_db
def test_the_first_example_of_the_guide_is_submitted_as_it_stands(
    tmp_path: Path, make_user: Callable[..., Any]
) -> None:
    make_user("ada")
    guide = Path(__file__).parents[3] / "docs/workflows.md"
    (tmp_path / "squares.txt").write_text(guide.read_text().split("```")[1])
    number = run("submit", str(tmp_path / "squares.txt"), "--user", "ada").strip()
    assert "squares of ada: 4 unscheduled" in run("show", number)
    definition = Workflow.objects.get().definition
    commands = [
        binary["run"]
        for stage in definition["stages"]
        for line in stage["lines"]
        for package in line["packages"]
        for binary in package["binaries"]
    ]
    for command in commands:
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, timeout=30)
    assert (tmp_path / "total.txt").read_text() == "14\n"
