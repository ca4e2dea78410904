"""Ganga's jobs on this machine, with real programs: the worked examples of submission, states, ids, kills and copies."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks_app.gpi.ganga import (
    ArgSplitter,
    CatalogueDataset,
    CustomMerger,
    Executable,
    File,
    GangaAttributeError,
    GangaDataset,
    GangaDatasetSplitter,
    GangaTypeError,
    GaussSplitter,
    GenericSplitter,
    Job,
    JobError,
    Local,
    LocalFile,
    ND280SplitNbJobs,
    NotSupported,
    PythonFunction,
    RegistryKeyError,
    SeedSplitter,
    SplitByFiles,
    SplitterError,
    TextMerger,
)
from tasks_app.gpi.job_registry import JobRegistry

Ended = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("jobs")


def shell(text: str, **more: Any) -> Executable:
    return Executable(exe="sh", args=["-c", text], **more)


def data(folder: Path, count: int) -> GangaDataset:
    for number in range(count):
        (folder / f"in{number:02d}.txt").write_text(f"line of {number}\n")
    return GangaDataset([str(folder / "in*.txt")])


def texts(job: Any, name: str = "stdout") -> list[str]:
    return [(subjob.outputdir / name).read_text().strip() for subjob in job.subjobs]


def test_subjobs_are_made_by_submit_and_by_nothing_else(tmp_path: Path, ended: Ended) -> None:
    """G1: nothing before, and after it numbered subjobs of this master."""
    j = Job(application=shell("cat $INPUTS"), inputdata=data(tmp_path, 2), splitter=SplitByFiles(filesPerJob=1))
    assert j.status == "new" and j.subjobs == [] and j.parent is None
    assert j.submit() is True
    assert j.subjobs != [] and [s.id for s in j.subjobs] == [0, 1] and all(s.parent is j for s in j.subjobs)
    assert ended(j).status == "completed" and texts(j) == ["line of 0", "line of 1"]
    assert [len(s.inputdata.files) for s in j.subjobs] == [1, 1]


def test_a_job_without_splitter_runs_once(ended: Ended) -> None:
    j = Job(name="hello")
    j.submit()
    assert ended(j).status == "completed" and (j.outputdir / "stdout").read_text() == "Hello World\n"
    assert j.subjobs == [] and sorted(path.name for path in j.outputs()) == ["stderr", "stdout"]
    with pytest.raises(JobError, match="is completed: only a new job"):
        j.submit()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"splitter": SplitByFiles()}, "needs inputdata"),
        ({"splitter": SplitByFiles(), "inputdata": CatalogueDataset("user.ada.in")}, "reads files of this machine"),
        ({"splitter": ArgSplitter()}, "makes no subjobs"),
        ({"splitter": ArgSplitter(args=["no list"])}, "list of lists"),
        (
            {"splitter": GenericSplitter(attribute="backend", values=[Local(), TextMerger()])},
            "all subjobs use one backend",
        ),
        ({"splitter": GenericSplitter(attribute="application.exes", values=["a"])}, "has no attribute exes"),
        ({"splitter": GenericSplitter(attribute="application.args", values=["a"])}, "of type list"),
        ({"splitter": GenericSplitter(attribute="status", values=["a"])}, "cannot differ between subjobs"),
        ({"splitter": GenericSplitter(attribute="name", values=["a"], multi_attrs={"name": ["b"]})}, "either"),
        ({"splitter": GenericSplitter(multi_attrs={"name": ["a"], "comment": []})}, "all of one length"),
        ({"splitter": ND280SplitNbJobs(), "inputdata": GangaDataset([__file__])}, "must be a number of at least 1"),
        ({"splitter": ArgSplitter(args=[[]] * 10_001)}, "at most 10000"),
        ({"application": Executable(exe="/no/such/program")}, "there is no file /no/such/program"),
        ({"application": Executable(exe="no-such-program")}, "there is no program no-such-program"),
        ({"inputfiles": ["/no/such/file"]}, "for the input sandbox"),
    ],
)
def test_what_does_not_fit_leaves_everything_as_it_was(changes: dict[str, Any], said: str) -> None:
    """G2."""
    j = Job(**changes)
    with pytest.raises(JobError, match=said):
        j.submit()
    assert (j.status, len(j.subjobs)) == ("new", 0)
    assert not (j.folder / "subjobs").exists() and not (j.folder / "rounds").exists()


def test_an_empty_split_is_a_splitter_error() -> None:
    with pytest.raises(SplitterError):
        Job(splitter=ArgSplitter()).submit()


def test_ids_lead_to_one_object(jobs: JobRegistry) -> None:
    """G3."""
    for _ in range(4):
        Job()
    j = Job(splitter=ArgSplitter(args=[["a"], ["b"], ["c"]]))
    j.submit()
    assert j.id == 4 and jobs(4) is j and jobs("4") is j
    assert jobs((4, 2)) is jobs("4.2") is j.subjobs(2) is j.subjobs[2]
    assert (j.subjobs(2).fqid, j.fqid) == ((4, 2), (4,))
    for wrong in (9, "4.3", (4, 7), "nobody"):
        with pytest.raises(RegistryKeyError):
            jobs(wrong)
    with pytest.raises(ValueError, match="is not the id of a job"):
        jobs((1, 2, 3))


def failing_to_submit(tmp_path: Path, *good: bool) -> Job:
    """A job whose subjobs can be submitted or not: their programs are there or not."""
    for number, there in enumerate(good):
        if there:
            (tmp_path / f"run{number}").write_text("#!/bin/sh\necho $SUBJOB\n")
            (tmp_path / f"run{number}").chmod(0o755)
    programs = [File(str(tmp_path / f"run{number}")) for number in range(len(good))]
    (tmp_path / "any").write_text("")
    return Job(
        application=Executable(exe=File(str(tmp_path / "any")), args=[]),
        splitter=GenericSplitter(attribute="application.exe", values=programs),
    )


@pytest.mark.parametrize(
    ("good", "keep_going", "states"),
    [("101", False, ["submitted", "new", "new"]), ("101", True, ["submitted", "new", "submitted"])],
)
def test_some_subjobs_cannot_be_submitted(
    tmp_path: Path, ended: Ended, good: str, keep_going: bool, states: list[str]
) -> None:
    """G10: who failed or was not tried stays new, and can be resubmitted once it can run."""
    j = failing_to_submit(tmp_path, *(one == "1" for one in good))
    if keep_going:
        assert j.submit(keep_going=True) is True
    else:
        with pytest.raises(JobError, match="subjob 1: there is no file"):
            j.submit()
    entries = j.store.read(j.id).subjobs
    assert [entry["status"] for entry in entries] == states and j.store.job(j.id)["status"] == "submitted"
    assert ended(j).status == "completed"
    (tmp_path / "run1").write_text("#!/bin/sh\necho late\n")
    (tmp_path / "run1").chmod(0o755)
    assert j.subjobs(1).resubmit() and ended(j.subjobs(1)).status == "completed"
    assert (j.subjobs(1).outputdir / "stdout").read_text() == "late\n"


@pytest.mark.parametrize(("good", "keep_going"), [("011", False), ("000", False), ("000", True)])
def test_when_no_subjob_was_taken_the_master_is_new_again(tmp_path: Path, good: str, keep_going: bool) -> None:
    """G11 with keep_going: no error then."""
    j = failing_to_submit(tmp_path, *(one == "1" for one in good))
    if keep_going:
        assert j.submit(keep_going=True) is False
    else:
        with pytest.raises(JobError):
            j.submit()
    assert (j.status, j.subjobs) == ("new", [])
    j.name = "it can be changed again"


def test_one_subjob_is_killed_refused_to_be_removed_and_copied(ended: Ended, jobs: JobRegistry) -> None:
    """G17, and what follows from it for the others."""
    j = Job(application=shell("exec sleep 300"), splitter=ArgSplitter(args=[["-c", "exec sleep 300"]] * 3))
    j.backend = Local(workers=3)
    j.submit()
    for subjob in j.subjobs:
        ended(subjob, "running")
    assert j.subjobs(1).kill() and [s.status for s in j.subjobs] == ["running", "killed", "running"]
    assert j.status == "running"
    assert not j.subjobs(1).remove() and not j.subjobs(1).submit() and len(j.subjobs) == 3
    copied = j.subjobs(1).copy()
    assert (copied.status, copied.parent, copied.subjobs) == ("new", None, [])
    assert copied.application == j.subjobs(1).application and copied.splitter is None and jobs(copied.id) is copied
    with pytest.raises(JobError, match="cannot be changed"):
        j.subjobs(1).name = "mine"
    assert j.kill() and j.status == "killed" and j.counts() == {"killed": 3}
    assert j.kill(), "who has ended is left alone"
    with pytest.raises(JobError, match="is new: there is nothing to kill"):
        copied.kill()


def test_failed_subjobs_are_resubmitted_and_keep_their_numbers(tmp_path: Path, ended: Ended) -> None:
    """G9, and the default of resubmit: only what failed."""
    flag = tmp_path / "works"
    j = Job(
        application=shell(""), splitter=ArgSplitter(args=[["-c", "echo a"], ["-c", f"cat {flag}"], ["-c", "echo c"]])
    )
    j.submit()
    assert ended(j).status == "failed" and [s.status for s in j.subjobs] == ["completed", "failed", "completed"]
    assert j.subjobs(1).exit_code == 1 and j.subjobs(1).error == "the program ended with 1"
    flag.write_text("b")
    assert j.resubmit()
    assert [entry["status"] for entry in j.store.read(j.id).subjobs] == ["completed", "submitted", "completed"]
    assert ended(j).status == "completed" and texts(j) == ["a", "b", "c"]
    assert [s.attempt for s in j.subjobs] == [1, 2, 1]
    with pytest.raises(JobError, match="has no failed subjobs"):
        j.resubmit()
    assert j.subjobs(0).resubmit() and ended(j).status == "completed" and j.subjobs(0).attempt == 2


@pytest.mark.parametrize(
    ("splitter", "files", "sizes"),
    [
        (GangaDatasetSplitter(files_per_subjob=5), 12, [5, 5, 2]),
        (GangaDatasetSplitter(files_per_subjob=5, maxFiles=7), 12, [5, 5]),
        (SplitByFiles(filesPerJob=10, maxFiles=15), 23, [10, 5]),
        (ND280SplitNbJobs(nbjobs=3), 10, [5, 5, 0]),
    ],
)
def test_files_are_split(tmp_path: Path, ended: Ended, splitter: Any, files: int, sizes: list[int]) -> None:
    """G13, G14, G16 with real files."""
    j = Job(application=shell("cat $INPUTS </dev/null | wc -l"), inputdata=data(tmp_path, files), splitter=splitter)
    j.submit()
    assert ended(j).status == "completed" and list(map(int, texts(j))) == sizes


def test_events_seeds_arguments_and_any_attribute(ended: Ended) -> None:
    """G15 with real jobs."""
    told = shell("echo $FIRST_EVENT $NUM_EVENTS $SEED $MORE", env={"MORE": "x"})
    for splitter, said in (
        (GaussSplitter(eventsPerJob=200, numberOfJobs=4, firstEventNumber=1000), ["1001 200 x", "1201 200 x"]),
        (SeedSplitter(numberOfJobs=2, firstSeed=7), ["7 x", "8 x"]),
        (GenericSplitter(attribute="application.env", values=[{"MORE": "y"}, {"MORE": "z"}]), ["y", "z"]),
        (GenericSplitter(multi_attrs={"application.args": [["-c", "echo 1"]], "name": ["one"]}), ["1"]),
        (ArgSplitter(args=[["p"], ["q r"]], append=True), ["x", "x"]),
    ):
        j = Job(application=told, splitter=splitter)
        j.submit()
        assert ended(j).status == "completed" and texts(j)[: len(said)] == said
    assert j.subjobs(1).application.args[-1] == "q r" and j.application.args[-1] != "q r"


def double(value: int, more: int = 0) -> int:
    return value * 2 + more


def test_functions_run_with_their_arguments(ended: Ended) -> None:
    j = Job(application=PythonFunction(double), outputfiles=["result.json"])
    j.splitter = GenericSplitter(multi_attrs={"application.args": [[1], [2]], "application.kwargs": [{}, {"more": 1}]})
    j.submit()
    assert ended(j).status == "completed", [s.error for s in j.subjobs]
    assert [json.loads(text) for text in texts(j, "result.json")] == [2, 5]
    with pytest.raises(GangaTypeError, match="uses json, which is outside of it"):
        PythonFunction(texts_of_json)
    with pytest.raises(GangaTypeError, match="defined with def"):
        PythonFunction(lambda: 1)


def texts_of_json() -> str:
    return json.dumps(1)


def test_outputs_are_merged_once_all_are_there(
    tmp_path: Path, ended: Ended, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "joins.py").write_text(
        "def mergefiles(files, output):\n    with open(output, 'w') as merged:\n        return merged.write(str(len(files)))\n"
    )
    j = Job(application=shell("echo $SEED > out.txt; echo told"), splitter=SeedSplitter(numberOfJobs=3))
    j.outputfiles = [LocalFile("out.txt")]
    j.postprocessors = [
        TextMerger(files=["out.txt", "stdout"]),
        CustomMerger(files=["stderr"], module=str(tmp_path / "joins.py")),
    ]
    j.submit()
    assert ended(j).status == "completed"
    assert (j.outputdir / "out.txt").read_text() == "".join(f"# job {j.id}.{n}\n{n + 1}\n" for n in range(3))
    assert (j.outputdir / "stderr").read_text() == "3"
    assert len(j.outputs()) == 3 + 9
    j.peek()
    j.peek("out.txt")
    assert "# job 0.2\n3\n" in capsys.readouterr().out
    with pytest.raises(JobError, match="has no output x"):
        j.peek("x")
    made = TextMerger(files=["out.txt"], compress=True).merge(j.subjobs, tmp_path / "else")
    assert [path.name for path in made] == ["out.txt.gz"]


def test_an_output_that_was_not_written_fails_the_subjob_and_nothing_is_merged(ended: Ended) -> None:
    j = Job(application=shell("test $SEED = 1 && echo > out.txt || true"), splitter=SeedSplitter(numberOfJobs=2))
    j.outputfiles, j.postprocessors = ["out.txt"], TextMerger(files=["out.txt"])
    j.submit()
    assert ended(j).status == "failed" and j.subjobs(1).error == "the program did not write out.txt"
    with pytest.raises(JobError, match=r"job 0\.1 is failed, so nothing is merged"):
        j.merger.merge(j.subjobs, "merged")
    assert TextMerger(files=["out.txt"], ignorefailed=True).merge(j.subjobs, "merged")


def test_attributes_are_checked_and_stored_as_they_are_set(jobs: JobRegistry, ended: Ended) -> None:
    j = Job(name="first")
    j.application.args = ["changed"]
    j.comment = "a comment"
    again = JobRegistry(jobs.store.root)(j.id)
    assert (again.name, again.comment, again.application.args) == ("first", "a comment", ["changed"])
    for set_it, error, said in (
        (lambda: setattr(j, "aplication", 1), GangaAttributeError, "Did you mean application"),
        (lambda: setattr(j.application, "arg", []), GangaAttributeError, "Did you mean args"),
        (lambda: setattr(j, "application", "echo"), GangaTypeError, "takes an application"),
        (lambda: setattr(j.application, "args", [object()]), GangaTypeError, "cannot be stored"),
        (lambda: setattr(j, "name", 5), GangaTypeError, "takes a text"),
        (lambda: setattr(j, "outputfiles", ["../x"]), JobError, "in the job's folder"),
        (lambda: setattr(j, "do_auto_resubmit", True), NotSupported, "call resubmit"),
        (lambda: Job(splitter=5), GangaTypeError, "takes a splitter"),
    ):
        with pytest.raises(error, match=said):
            set_it()
    j.postprocessors.append(TextMerger())
    j.application.env["A"] = "b"
    j.name = "second"
    assert j.copy().application.env == {"A": "b"} and len(jobs[-1].postprocessors) == 1
    assert jobs[-1].remove() and jobs(j.id).name == "second"
    j.outputfiles.append("a/b")
    with pytest.raises(JobError, match="in the job's folder"):
        j.submit()
    j.outputfiles = []
    j.submit()
    ended(j)
    with pytest.raises(JobError, match="only a new job can be changed"):
        j.application.args = ["late"]
    assert j.application.args == ["changed"] and len(jobs) == 1


def test_jobs_are_selected_sliced_and_shown(jobs: JobRegistry, ended: Ended) -> None:
    for name in ("one", "two", "<b>\x1b[2J"):
        Job(name=name)
    j = Job(name="split", splitter=ArgSplitter(args=[["a"], ["b"]]))
    j.submit()
    ended(j)
    assert jobs.select(name="*o*").ids() == [0, 1] and jobs.select(status="completed").ids() == [3]
    assert jobs.select(1, 2).ids() == [1, 2] and jobs[-2:].ids() == [2, 3] and jobs[0].name == "one"
    assert jobs("split") is j and len(j.subjobs.select(status=["completed", "failed"])) == 2
    shown = repr(jobs)
    assert "3    | completed | split" in shown and "2 completed" in shown and "\x1b" not in shown
    assert "&lt;b&gt;" in jobs._repr_html_() and "<b>" not in jobs._repr_html_()
    assert "3.1" in repr(j.subjobs)
    with pytest.raises(ValueError, match="done is no state"):
        jobs.select(status="done")
    assert jobs.select(name="one").copy()[0].name == "one"
    assert jobs.select(status="new").remove() and jobs.ids() == [3] and Job().id == 5


def test_a_job_outlives_its_script_and_a_killed_runner_is_noticed(jobs: JobRegistry, ended: Ended) -> None:
    j = Job(application=shell("exec sleep 300"), splitter=ArgSplitter(args=[["-c", "echo $$; exec sleep 300"]] * 2))
    j.backend = Local(workers=1)
    j.submit()
    ended(j.subjobs(0), "running")
    other = JobRegistry(jobs.store.root)
    assert [other((j.id, number)).status for number in (0, 1)] == ["running", "submitted"]
    pid = json.loads((j.folder / "subjobs/0/state.json").read_text())["pid"]
    runner = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(runner, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    assert ended(j).status == "failed" and "runner on this machine" in j.subjobs(1).error
    assert other(j.id).subjobs(0).status == "failed"


SCRIPT = """
import sys, threading
from tasks_app.gpi.ganga import *
registry = JobRegistry(sys.argv[1])
{body}
"""


def in_another_process(jobs: JobRegistry, body: str) -> Any:
    import subprocess

    root = str(Path(__file__).resolve().parents[3])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(body=body), str(jobs.store.root)],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_share_a_repository(jobs: JobRegistry) -> None:
    others = [in_another_process(jobs, "for n in range(30): Job(registry=registry)") for _ in range(2)]
    for other in others:
        with other:
            assert other.wait(60) == 0
    assert jobs.ids() == list(range(60))


def test_a_submission_that_was_killed_is_taken_back(jobs: JobRegistry) -> None:
    j = Job(splitter=ArgSplitter(args=[["a"], ["b"]]))
    body = f"""
import os, signal
j = registry({j.id})
Local.start = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
j.submit()
"""
    with in_another_process(jobs, body) as other:
        assert other.wait(60) == -signal.SIGKILL
    assert (j.status, j.subjobs) == ("new", [])
    assert j.submit() and len(j.subjobs) == 2
