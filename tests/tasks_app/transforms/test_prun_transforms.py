"""What the options of prun and pathena mean to our transforms, and which jobs they refuse."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.tasks_app.running_transforms import Run, read

COMMAND = ("-p", quote("echo %IN2 %IN %SEC > out"))


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (("-i", "['a', 'b']"), "a,b2 a,b %SEC"),
        (("--inMap", "{'IN': ['a'], 'IN2': ['b', 'c'], 'SEC': ['d']}"), "b,c a d"),
        (
            ("-i", "['http://x/a', 'file:///b']", "--inMap", "{'IN2': [], 'SEC': ['s']}", "--givenPFN"),
            "http://x/a,file:///b s",
        ),
    ],
)
def test_streams_are_named_in_the_command(run: Run, tmp_path: Path, options: tuple[str, ...], written: str) -> None:
    run("run_command", "-j", "", "-r", ".", *options, *COMMAND)
    assert (tmp_path / "out").read_text().strip() == written


def test_lists_of_inputs_are_written_where_the_command_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "c").write_text("found")
    line = ("-i", "['a', 'b']", "--inMap", "{'S': ['c']}", "--writeInputToTxt", "IN:in.txt,S:second.txt")
    run("run_command", "-r", "sub", *line, "-p", quote("cat in.txt second.txt c > out"))
    assert (tmp_path / "sub" / "out").read_text() == "a,bcfound"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (("run_command", "-p", "true", "--useAthenaPackages"), "--useAthenaPackages asks for an Athena release"),
        (("run_command", "-p", "true", "--rootVer", "6.30"), "--rootVer asks for a ROOT release"),
        (("run_command", "-p", "true", "--containerImage", "docker://alpine"), "--containerImage asks for a container"),
        (("run_command", "-p", "true", "--dbrFile=x"), "--dbrFile asks for a database release"),
        (("athena_command", "-j", "job.py", "--useCMake"), "Job options need an Athena release"),
        (("athena_command", "--trf", "-j", quote("Reco_tf.py --x=1"), "--useCMake"), "Reco_tf.py is not here"),
        (
            ("athena_command", "--trf", "-j", "true", "-o", "{'ntuple': [('FILE1', 'x', 'lfn')]}"),
            "ntuple is one that only",
        ),
        (("build_command", "-i", "s.tar.gz", "-o", "x", "--useCMake"), "--useCMake asks for an Athena release"),
    ],
)
def test_what_cannot_work_here_is_refused_with_a_sentence(
    run: Run, tmp_path: Path, call: tuple[str, ...], says: str
) -> None:
    assert says in run(*call, code=73).stderr
    assert read(tmp_path / "jobReport.json")["failure"]["kind"] == "not_here"


def test_a_script_that_merges_gets_the_output_and_the_inputs(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    script = tmp_path / "merge.sh"
    script.write_text('#!/bin/sh\nout=$1; shift; cat "$@" > "$out"\n')
    script.chmod(0o755)
    run("merge_command", "-r", ".", "-j", "merge.sh", "a,b:all", "--mergeSingleFile")
    assert (tmp_path / "all").read_text() == "ab"
    done = run("merge_command", "-j", "merge.sh", "--useRootCore", "a,b:all", code=73)
    assert "--useRootCore asks for RootCore" in done.stderr


def test_an_output_that_is_not_there_is_named_as_the_user_did(run: Run, tmp_path: Path) -> None:
    def last(*names: str, act: str = "") -> str:
        outputs = {name: f"user.ada.7._000001.{name.replace('*', 'XYZ')}" for name in names}
        done = run("run_command", "-r", ".", "-o", str(outputs), "-p", quote(f"{act}touch there.txt"))
        return done.stderr.splitlines()[-1]

    assert last("there.txt", "b*.txt") == (
        "The command wrote no file that b*.txt matches, of which user.ada.7._000001.bXYZ.txt was to be made."
    )
    assert last("c.txt", "there.txt") == "The command wrote no c.txt, which was to become user.ada.7._000001.c.txt."
    assert last("b*.txt", "there.txt", "c.txt") == "The command wrote no b*.txt or c.txt, which were to be outputs."
    for name, act, what in (
        ("d.txt", "mkdir d.txt", "folder"),
        ("l.txt", "ln -s there.txt l.txt", "link"),
        ("p.txt", "mkfifo p.txt", "named pipe"),
        ("away.txt", "ln -s nowhere away.txt", "link"),
    ):
        said = f"The command wrote no plain file {name}, which was to become user.ada.7._000001.{name}: it is a {what}."
        assert last(name, "there.txt", act=f"{act}; ") == said
    assert last("d.txt", "c.txt", act="rm -rf d.txt; mkdir d.txt; ") == (
        "The command wrote no d.txt (it is a folder) or c.txt, which were to be outputs."
    )
    assert last(*"abcdefg") == "The command wrote no a, b, c, d, e or 2 more, which were to be outputs."
