"""Ganga's jobs on a site: one task, whose groups are the subjobs. Agents and a pilot work whenever a test lets them."""

from __future__ import annotations

import json
import signal
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from tasks_app.agents import feeder, refiner
from tasks_app.gpi.ganga import (
    ArgSplitter,
    CatalogueDataset,
    Executable,
    GangaDataset,
    GaussSplitter,
    GenericSplitter,
    Jedi,
    Job,
    JobError,
    LocalFile,
    ND280SplitNbJobs,
    SplitByFiles,
)
from tasks_app.gpi.job_registry import JobRegistry
from tasks_app.models import Task, TaskParams
from tests.flow.driving import add_dataset, states
from tests.flow.driving import jobs as jobs_of
from tests.flow.pilot import Pilot, drive
from tests.tasks_app.gpi.test_local_jobs import in_another_process

pytestmark = [pytest.mark.usefixtures("books", "jobs")]


@pytest.fixture
def site(
    live_server: LiveServer,
    make_token: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    tmp_path: Path,
) -> str:
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    monkeypatch.setenv("JEDI_TOKEN", make_token(name="ada"))
    monkeypatch.setenv("JEDI_SERVER_URL", live_server.url)
    return live_server.url


def look(job: Job) -> Job:
    job._registry.look(job, now=True)
    return job


def number_of(job: dict[str, Any]) -> int:
    return int(job["jobPars"].partition("SUBJOB%3D")[2].partition("%20")[0])


def without(*numbers: int) -> Pilot:
    return Pilot(lambda job: "failed" if number_of(job) in numbers else "finished")


def task_of(job: Job) -> Task:
    return Task.objects.get(pk=job.store.job(job.id)["backend"]["task"])


def test_subjobs_keep_their_numbers_from_submission_to_the_last_attempt(site: str) -> None:
    """G1 and G9 on the site."""
    j = Job(name="arguments of mine", backend=Jedi(), splitter=ArgSplitter(args=[["a"], ["b"], ["c"], ["d"]]))
    assert j.submit() and [s.status for s in j.subjobs] == ["submitted"] * 4
    assert look(j).status == "submitted" and jobs_of(task_of(j).id) == []
    assert task_of(j).name.startswith("user.ada.arguments-of-mine.") and task_of(j).user == "ada"
    drive(without(1, 2))
    assert look(j).status == "failed" and j.counts() == {"failed": 2, "completed": 2}
    assert (j.subjobs(1).exit_code, j.subjobs(0).exit_code) == (65, 0) and "exit code 65" in j.subjobs(1).error
    assert j.resubmit() and look(j).status == "submitted" and j.counts() == {"completed": 2, "submitted": 2}
    drive(without(2))
    assert look(j).status == "failed" and j.subjobs(1).status == "completed" and j.subjobs(2).attempt == 2
    assert j.subjobs(2).resubmit()
    drive(Pilot())
    assert look(j).status == "completed" and task_of(j).status == "done"
    assert states(task_of(j).id) == {"finished": 4, "failed": 3}
    with pytest.raises(JobError, match="is not run again on the site"):
        j.subjobs(0).resubmit()


def test_one_subjob_is_killed_then_all(site: str) -> None:
    """G17 on the site."""
    j = Job(backend=Jedi(), splitter=ArgSplitter(args=[["a"], ["b"], ["c"]]))
    j.submit()
    with pytest.raises(JobError, match="among those named is at work"):
        j.subjobs(1).kill()
    refiner.run()
    feeder.run()
    assert j.subjobs(1).kill() and [s.status for s in j.subjobs] == ["submitted", "killed", "submitted"]
    assert not j.subjobs(1).remove() and j.subjobs(1).copy().parent is None
    assert j.kill()
    drive(Pilot())
    assert look(j).status == "killed" and task_of(j).status == "aborted"
    assert j.subjobs.select(status="killed")[:2].resubmit()
    drive(Pilot())
    assert look(j).counts() == {"killed": 1, "completed": 2} and j.status == "completed"


def test_files_of_the_catalogue_are_split_in_order(site: str) -> None:
    add_dataset("user.ada.in", 5)
    j = Job(backend=Jedi(), inputdata=CatalogueDataset("user.ada.in"), splitter=SplitByFiles(filesPerJob=2))
    j.submit()
    drive(Pilot())
    assert look(j).status == "completed"
    read = [[f"user.ada.in.{n:05d}" for n in some] for some in ([0, 1], [2, 3], [4])]
    assert [s.inputdata.files for s in j.subjobs] == read
    assert sorted(job["inFiles"].split(",")[0] for job in [*_pilot_jobs(j)]) == [some[0] for some in read]


def _pilot_jobs(j: Job) -> list[dict[str, Any]]:
    from tests.flow.driving import inputs  # the names that jobs of the task read

    return [{"inFiles": ",".join(inputs(job.id))} for job in jobs_of(task_of(j).id)]


def test_what_runs_stands_in_the_sandbox_and_not_in_a_command_line(site: str, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("data")
    hostile = '\'; rm -rf "$HOME" ${IN} %IN <&>'
    j = Job(
        name=hostile,
        application=Executable(exe="echo", args=[hostile], env={"A": hostile}),
        inputfiles=[str(tmp_path / "data.txt")],
        outputfiles=[LocalFile("out.txt")],
        splitter=GaussSplitter(numberOfJobs=2),
        backend=Jedi(attempts=2, memory_mb=100, cores=1),
    )
    j.submit()
    params = TaskParams.objects.get(pk=task_of(j).id).params
    assert "rm -rf" not in json.dumps(params) and params["maxAttempt"] == 2
    (archive,) = (path for path in (tmp_path / "kept").iterdir() if not path.name.startswith("."))
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        (calls,) = [json.load(packed.extractfile(n)) for n in names if n == "subjobs.json"]  # type: ignore[arg-type]
    assert {"data.txt", "gpi_driver.py", "subjobs.json"} <= set(names)
    assert [call["env"]["FIRST_EVENT"] for call in calls] == ["1", "6"] and calls[0]["words"] == ["echo", hostile]
    assert [s for s in ("stdout", "stderr", "out.txt") if f"<output>{s}</output>" not in params["loadXML"]] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"inputdata": GangaDataset([__file__]), "splitter": SplitByFiles()}, "register_dataset"),
        (
            {"inputdata": CatalogueDataset("user.ada.nothing"), "splitter": SplitByFiles()},
            "no dataset user.ada.nothing",
        ),
        ({"outputfiles": ["*.root"]}, r"the site has to know the names of outputs: \*.root"),
        (
            {"inputdata": CatalogueDataset("user.ada.in"), "splitter": ND280SplitNbJobs(nbjobs=3)},
            "subjob 2 has no input",
        ),
        ({"splitter": GenericSplitter(attribute="backend.cores", values=[1, 2])}, "the same for all of them"),
        ({"backend": Jedi(cores=-5)}, "coreCount"),
        ({"backend": Jedi(server="nonsense")}, "must begin with http"),
        ({"splitter": ArgSplitter()}, "makes no subjobs"),
    ],
)
def test_what_the_site_cannot_do_leaves_everything_as_it_was(site: str, changes: dict[str, Any], said: str) -> None:
    """G2 on the site."""
    add_dataset("user.ada.in", 10)
    j = Job(**{"backend": Jedi(), **changes})
    with pytest.raises(JobError, match=said):
        j.submit()
    assert (j.status, len(j.subjobs), Task.objects.count()) == ("new", 0, 0)


def test_a_job_without_splitter_is_a_task_of_one_job(site: str) -> None:
    j = Job(backend=Jedi())
    j.submit()
    drive(Pilot(lambda job: "failed"))
    assert look(j).status == "failed" and j.subjobs == [] and j.exit_code == 65
    assert j.resubmit()
    drive(Pilot())
    assert look(j).status == "completed" and len(jobs_of(task_of(j).id)) == 2


def test_a_submission_that_was_killed_is_carried_on_and_makes_one_task(site: str, jobs: JobRegistry) -> None:
    """Killed after the site has taken it and before that is written down."""
    j = Job(backend=Jedi(), splitter=ArgSplitter(args=[["a"], ["b"]]))
    body = f"""
import os, signal
from tasks_app.gpi.client import Client
submit = Client.submit
def submitted_and_killed(*given, **more):
    submit(*given, **more)
    os.kill(os.getpid(), signal.SIGKILL)
Client.submit = submitted_and_killed
registry({j.id}).submit()
"""
    with in_another_process(jobs, body) as other:
        assert other.wait(60) == -signal.SIGKILL
    assert Task.objects.count() == 1 and "task" not in j.store.job(j.id)["backend"]
    assert look(j).status == "submitted" and len(j.subjobs) == 2 and Task.objects.count() == 1
    drive(Pilot())
    assert look(j).status == "completed"


def test_a_site_that_is_away_is_said_and_changes_nothing(
    site: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    from tasks_app.gpi import client

    j = Job(backend=Jedi(), splitter=ArgSplitter(args=[["a"], ["b"]]))
    j.submit()
    monkeypatch.setattr(client, "BACK_OFF_S", (0.0, 0.0))
    monkeypatch.setenv("JEDI_SERVER_URL", "http://127.0.0.1:9")
    assert look(j).status == "submitted" and "does not answer" in caplog.text
    caplog.clear()
    with pytest.raises(JobError, match="does not answer"):
        j.kill()
    assert j.status == "submitted"


def test_ten_thousand_subjobs_are_one_call(site: str) -> None:
    j = Job(backend=Jedi(), splitter=ArgSplitter(args=[[str(n)] for n in range(10_000)]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert j.submit()
    assert look(j).counts() == {"submitted": 10_000} and Task.objects.count() == 1
    assert j.subjobs(9_999).application.args == ["9999"]
