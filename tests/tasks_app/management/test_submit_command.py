"""`manage.py submit`: from a file or in a few words, and waiting for the end."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from brokerage_app.models import Queue
from jedisite.models import Agent
from tasks_app.models import Job, JobParams, Task
from tasks_app.params.schema import ParamErrors, parse
from tasks_app.params.shorthand import Wish, dictionary
from tests.flow.driving import settle
from tests.flow.pilot import Pilot, always, drive
from tests.tasks_app.running_transforms import Run

Make = Callable[..., Any]
ADA = ["--user", "ada", "--exec", "x", "--name"]
LOG = {"type": "template", "param_type": "log", "dataset": "o.log", "value": "o.${SN}.log.tgz"}


def submit(*arguments: str, **more: Any) -> tuple[int, str]:
    """(id, what it says on its second stream)"""
    out, err = io.StringIO(), io.StringIO()
    call_command("submit", *arguments, stdout=out, stderr=err, **more)
    return int(out.getvalue()), err.getvalue()


def test_a_command_in_a_few_words_becomes_a_task_that_runs(books: None, make_user: Make) -> None:
    make_user()
    agents_work()
    words = [
        "--user",
        "ada",
        "--exec",
        "echo ${SN} > hello.txt",
        "--name",
        "user.ada.hello",
        "--n-jobs",
        "3",
        "--output",
        "hello.txt",
    ]
    number, said = submit(
        *words, "--memory-mb", "500", "--set", "maxAttempt=1", "--wait", sleep=lambda seconds: drive(Pilot())
    )
    task = Task.objects.get(pk=number)
    assert (task.status, task.user, task.ram_count) == ("done", "ada", 500)
    first, last = said.splitlines()
    assert first == f"{number} registered     0/0"
    assert last == f"{number} done          3/3     3 finished"
    jobs = list(Job.objects.filter(task_id=number).order_by("id"))
    texts = [JobParams.objects.get(pk=job.id).params for job in jobs]
    assert shlex.split(texts[1])[:4] == [
        "-p",
        "echo%202%20%3E%20hello.txt",
        "-o",
        "{'hello.txt': 'user.ada.hello.000002.hello.txt'}",
    ]


def looking(act: Callable[[int], object], most: int = 60) -> Callable[[float], None]:
    """A sleep that does what happens between two looks instead, by the number of the look; too many of them fail."""
    looks = count(1)

    def sleep(seconds: float) -> None:
        look = next(looks)
        assert look < most
        act(look)

    return sleep


def test_waiting_says_why_nothing_goes_on_once_and_again_when_it_is_another_reason(
    books: None, make_user: Make
) -> None:
    make_user()
    agents_work()

    def back_online() -> None:
        Queue.objects.update(status="online")
        drive(Pilot())

    acts = {1: settle, 20: lambda: Queue.objects.update(status="offline"), 40: back_online}
    sleep = looking(lambda look: (acts.get(look, agents_work)(), agents_work()))

    words = ["--user", "ada", "--exec", "x", "--name", "user.ada.t", "--wait"]
    number, said = submit(*words, sleep=sleep)
    lines = said.splitlines()
    waits, closed = lines[2:4]
    assert lines[1] == f"{number} running       0/1     1 activated" and len(lines) == 5, said
    assert waits.startswith("Its jobs wait. No pilot has asked for jobs at SITE_A")
    assert closed == "Its jobs wait. 1 job waits at SITE_A: the queue is offline"


def test_waiting_says_at_once_that_no_site_runs(books: None, make_user: Make) -> None:
    make_user()
    sleep = looking(lambda look: (agents_work(), drive(Pilot())) if look == 20 else None)
    number, said = submit(*ADA, "user.ada.t", "--wait", sleep=sleep)
    first, no_site, last = said.splitlines()
    assert first == f"{number} registered     0/0" and last.startswith(f"{number} done")
    assert no_site.startswith("No site runs here (") and no_site.endswith("with `.venv/bin/python manage.py up`.")


def agents_work() -> None:
    """As when a site runs somewhere on this database."""
    alive = {"period_s": 5, "last_ended_at": timezone.now()}
    for name in ("refiner", "job_generator"):
        Agent.objects.update_or_create(name=name, defaults=alive)


def test_the_exit_code_says_how_the_task_ended(books: None, make_user: Make) -> None:
    make_user()
    words = ["--user", "ada", "--exec", "false", "--name", "user.ada.no", "--set", "maxAttempt=1", "--wait"]
    with pytest.raises(SystemExit) as ended:
        submit(*words, sleep=lambda seconds: drive(Pilot(always("failed"))))
    assert ended.value.code == 4


def test_the_words_are_those_that_the_transform_takes(run: Run, tmp_path: Path) -> None:
    wish = Wish(
        'cat $(echo %IN | tr , " ") > sum.txt; touch "a b.log" ${SN}.log', "t", in_ds="d", outputs=("sum.txt", "*.log")
    )
    text = dictionary(wish)["jobParameters"][0]["value"]
    for name, value in (("SN", "7"), ("IN/T", "['x', 'y']"), ("OUTPUT0", "out.0"), ("OUTPUT1", "out.1.tgz")):
        text = text.replace(f"${{{name}}}", value)
    (tmp_path / "x").write_text("1")
    (tmp_path / "y").write_text("2")
    run("run_command", *shlex.split(text))
    assert (tmp_path / "out.0").read_text() == "12" and (tmp_path / "out.1.tgz").exists()


@pytest.mark.parametrize(
    ("wish", "part"),
    [
        (Wish("x", "n"), {"taskName": "n", "noInput": True, "nEvents": 1}),
        (Wish("x", "n", jobs=5), {"nEvents": 5, "nEventsPerJob": 1}),
        (Wish("x", "n", in_ds="d", files_per_job=2), {"nFilesPerJob": 2}),
        (Wish("x", "n", cores=0, memory_mb=5), {"coreCount": 0, "ramCount": 5, "ramUnit": "MB"}),
        (Wish("x", "n", more={"nEvents": 9}), {"nEvents": 9}),
        (Wish("x", "n", out_ds="o"), {"taskName": "n", "log": LOG}),
    ],
)
def test_a_wish_is_a_valid_dictionary(wish: Wish, part: dict[str, Any]) -> None:
    found = dictionary(wish)
    assert {name: found[name] for name in part} == part
    parse(found)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        (Wish(" ", "n"), "exec"),
        (Wish("x", ""), "name"),
        (Wish("x", "n", in_ds="d", jobs=2), "n_jobs"),
        (Wish("x", "n", files_per_job=2), "files_per_job"),
        (Wish("x", "n", jobs=0), "n_jobs"),
        (Wish("x", "n", outputs=("a/b",)), "output"),
        (Wish("x", "n", outputs=("a'b",)), "output"),
        (Wish("x", "n", outputs=("a", "a")), "output"),
        (Wish("x", "n", memory_mb=-1), "memory_mb"),
    ],
)
def test_a_wish_that_cannot_be_names_the_field(wish: Wish, field: str) -> None:
    with pytest.raises(ParamErrors) as refused:
        dictionary(wish)
    assert [e.field for e in refused.value.errors] == [field]


@pytest.mark.django_db
def test_what_is_refused_is_said_and_nothing_is_stored(
    make_user: Make, task_params: Make, rows_stored: Callable[[], dict[str, int]], tmp_path: Path
) -> None:
    make_user()
    before = rows_stored()
    good, bad, odd = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "odd.json"
    good.write_text(json.dumps(task_params()))
    bad.write_text(json.dumps(task_params(nFilesPerJobb=3)))
    odd.write_text("{")
    for arguments, said in (
        ([str(good), "--user", "nobody"], "there is no user nobody."),
        ([str(good), "--user", "daa"], "there is no user daa. Did you mean ada?"),
        ([str(bad), "--user", "ada"], "nFilesPerJobb: "),
        ([str(odd), "--user", "ada"], "is not valid JSON"),
        ([str(tmp_path / "none"), "--user", "ada"], "cannot be read"),
        (["--user", "ada"], "give a file or --exec"),
        ([str(good), "--user", "ada", "--n-jobs", "2"], "--n-jobs are for --exec"),
        (["--user", "ada", "--exec", "x"], "--name: "),
        (["--user", "ada", "--exec", "cat %IN > o", "--name", "user.ada.t"], "--in-ds: %IN in the command stands for"),
        ([*ADA, "user.ada.my task"], "--name: 'user.ada.my task' cannot stand here: a name has letters"),
        ([*ADA, "user.eve.t", "--output", "a"], "--name: user.eve.t.a is in the scope of a user"),
        ([*ADA, "user.ada.t", "--out-ds", "user.ada.a b"], "--out-ds: 'user.ada.a b' cannot stand here"),
        (["--user", "ada", "--exec", "x", "--out-ds", "user.ada.a b"], "--out-ds: 'user.ada.a b' cannot stand here"),
        ([*ADA, "user.ada.t", "--in-ds", "a b"], "--in-ds: 'a b' cannot be the name of a dataset"),
        ([*ADA, "user.ada.t", "--files-per-job", "2"], "--files-per-job: Without an input"),
        ([*ADA, "user.ada.t", "--in-ds", "a", "--files-per-job", "1001"], "--files-per-job: The maximum is 1000"),
        ([*ADA, "user.ada.t", "--memory-mb", "9999999999"], "--memory-mb: "),
        ([*ADA, "user.ada.t", "--set", "log={}"], "--set log.type: "),
        (
            ["--user", "ada", "--exec", "x", "--name", "n", "--set", "noOutput=yes"],
            "--set noOutput=yes: write noOutput=true",
        ),
        (["--user", "ada", "--exec", "x", "--name", "n", "--set", "noOutput=False"], "write noOutput=false"),
        (["--user", "ada", "--exec", "x", "--name", "n", "--set", "vo=lab"], "write a text as 'vo=\"text\"'"),
        (["--user", "ada", "--exec", "x", "--name", "n", "--set", 'nFiles="x"'], "--set nFiles: "),
    ):
        with pytest.raises(CommandError) as refused:
            submit(*arguments)
        assert said in str(refused.value), arguments
        assert "jobParameters[" not in str(refused.value) and "A-Za-z" not in str(refused.value)
    assert rows_stored() == before
    number, _ = submit(str(good), "--user", "ada")
    assert Task.objects.get().id == number
