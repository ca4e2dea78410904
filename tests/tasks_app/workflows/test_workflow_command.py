"""`manage.py workflow`: check and schema."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

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
