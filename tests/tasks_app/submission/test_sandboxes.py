"""The archives that the site keeps: by names that nobody can guess, within a size, and jobs wait when theirs is not there."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from jedisite.identity.callers import Caller, Role
from tasks_app.agents import feeder, job_generator, refiner
from tasks_app.agents.watchdogs import pending
from tasks_app.commands import bulk
from tasks_app.models import Command, Sandbox, Task, TaskParams
from tasks_app.params import buildstep
from tasks_app.params.acts import ACTS
from tasks_app.submission import sandbox_uploads, sandboxes
from tests.flow.driving import add_dataset, add_queue, give_sandbox, jobs, parameters, reads, status, submit, task, wake
from tests.statements import sent
from tests.tasks_app.params.dictionaries import smallest

ARCHIVE = gzip.compress(b"an archive", mtime=0)
Make = Callable[..., Any]


@pytest.fixture
def kept(settings: Any, tmp_path: Path) -> Callable[[], str]:
    settings.JEDI_SANDBOXES = tmp_path / "kept"
    (tmp_path / "x.tar.gz").write_bytes(ARCHIVE)
    return lambda: sandbox_uploads.keep(tmp_path / "x.tar.gz", "ada")


@pytest.mark.django_db
def test_anybody_who_knows_the_name_may_have_a_sandbox(kept: Callable[[], str]) -> None:
    name = kept()
    answer = Client().get(f"/cache/{name}")
    assert answer.status_code == 200
    assert b"".join(answer.streaming_content) == ARCHIVE  # type: ignore[attr-defined]
    assert kept() != name
    for wrong in ("sources.tar.gz", ".hidden", "..", f"{name}.part"):
        assert Client().get(f"/cache/{wrong}").status_code == 404


@pytest.mark.django_db
def test_a_sandbox_that_is_too_large_is_not_kept(
    kept: Callable[[], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox_uploads, "LIMIT_BYTES", 5)
    with pytest.raises(sandbox_uploads.SandboxRefusedError, match="has more than 5 bytes"):
        kept()
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.django_db
def test_a_sandbox_in_use_is_dated_anew_and_knows_the_task(
    kept: Callable[[], str], make_task: Callable[..., Task]
) -> None:
    name, made = kept(), make_task()
    day = timezone.now() - timedelta(days=1)
    Sandbox.objects.update(last_used=day)
    for _ in range(2):
        assert sandboxes.lacking(made.id, "ada", {"sourceURL": "http://127.0.0.1:8000"}, f"-r . -a {name} -p x") == ""
    row = Sandbox.objects.get()
    assert row.last_used > day and list(row.tasks.all()) == [made]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("raw", "line", "missing"),
    [
        ({"sourceURL": "http://localhost:80"}, "-a jobO.1.tar.gz", True),
        ({"sourceURL": "http://localhost:80"}, "-l ${LIB}", False),
        ({"sourceURL": "http://localhost:80", "buildSpec": {"archiveName": "s.tar.gz"}}, "-l ${LIB}", True),
        ({"sourceURL": "http://localhost", "buildSpec": {"archiveName": "s", "tarBallViaDDM": "a:b"}}, "", False),
        ({"sourceURL": "https://elsewhere.example"}, "-a jobO.1.tar.gz", False),
        ({"sourceURL": "file:///nowhere"}, "-a jobO.1.tar.gz", False),
        ({}, "-a jobO.1.tar.gz", True),
        ({}, "-ajobO.1.tar.gz", True),
        ({}, "-p x -- tar -a jobO.1.tar.gz", False),
        ({}, '-p "ls -a x.tar.gz"', False),
        ({"transPath": "Sim_tf.py"}, "-a 2.5", False),
        ({"transPath": "mine.sh"}, "-a jobO.1.tar.gz", True),
        ({"preproSpec": {"jobParameters": "-a jobO.1.tar.gz"}}, "", True),
        ({"mergeSpec": {"jobParameters": "-a jobO.1.tar.gz"}}, "", True),
        ({"buildSpec": {"jobParameters": "-i jobO.1.tar.gz"}}, "", True),
        ({"buildSpec": {"jobParameters": "-i ${IN}"}}, "", False),
        ({"sourceURL": "https://elsewhere.example"}, "-a jobO.${SN}.tar.gz", True),
        ({"sourceURL": "http://localhost:80"}, "--data jobO.1.tar.gz", False),
        ({"sourceURL": "http://[x"}, "-a jobO.1.tar.gz", True),
    ],
)
def test_which_sandboxes_the_site_must_have(
    kept: Callable[[], str], make_task: Callable[..., Task], raw: dict[str, Any], line: str, missing: bool
) -> None:
    assert bool(sandboxes.lacking(make_task().id, "ada", raw, line)) == missing


def test_another_sandbox_takes_the_place_of_the_first() -> None:
    assert buildstep.with_sandbox('-j "" -a jobO.1.tar.gz -r . -p "-a%20b"', "jobO.2.tar.gz") == (
        '-j "" -a jobO.2.tar.gz -r . -p "-a%20b"'
    )
    assert buildstep.with_sandbox("-a x", None) == "-a x"
    assert buildstep.archives_of({"fixedSandbox": "new"}, "-a old") == ["new"]


@pytest.mark.usefixtures("transactional_db")
def test_a_task_waits_for_its_sandbox_and_says_which_it_is(kept: Callable[[], str]) -> None:
    add_queue()
    add_dataset("lab.in", 1)
    line = {"type": "constant", "value": "-a jobO.7.tar.gz --sourceURL ${SURL}"}
    made = submit(parameters("lab.t", line, reads("lab.in"), nFilesPerJob=1, sourceURL="http://127.0.0.1:8000"))
    for run in (refiner.run, feeder.run, job_generator.run):
        wake()
        run()
    assert status(made) == "pending"
    assert "jobO.7.tar.gz is not kept at http://127.0.0.1:8000" in (task(made).error_dialog or "")
    late = sandbox_uploads.Incoming("ada", "jobO.7.tar.gz")
    late.write(ARCHIVE)
    late.finish()
    wake()
    pending.run()
    job_generator.run()
    assert len(jobs(made)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_file_that_cannot_be_removed_keeps_none_of_the_others(kept: Callable[[], str]) -> None:
    bad, good = (Sandbox.objects.get(name=kept()) for _ in range(2))
    bad.path.unlink()
    bad.path.mkdir()
    assert sandboxes.remove([bad.pk, good.pk]) == 2
    assert bad.path.is_dir() and not good.path.exists() and not Sandbox.objects.exists()


WITH = {"jobParameters": [{"type": "constant", "value": "-a jobO.1.tar.gz -- sh run.sh"}]}


@pytest.mark.django_db
def test_the_sandbox_of_another_user_is_run_only_by_tasks_that_named_it_when_it_was_there(
    kept: Callable[[], str], make_task: Callable[..., Task], django_capture_on_commit_callbacks: Any
) -> None:
    before, named = make_task(), make_task()
    give_sandbox("jobO.1.tar.gz", owner="bob")
    assert sandboxes.refusal("ada", WITH) == ""
    sandboxes.note_task(named.id, WITH)
    line = "-a jobO.1.tar.gz -- sh run.sh"
    no = "the sandbox jobO.1.tar.gz belongs to another user, and was not there when the task was submitted"
    assert sandboxes.lacking(before.id, "ada", WITH, line) == f"user sandbox file unavailable: {no}"
    assert sandboxes.refusal_again(before.id, "ada", WITH, {}) == no
    assert not before.sandbox_set.exists()
    assert sandboxes.lacking(named.id, "ada", WITH, line) == sandboxes.refusal_again(named.id, "ada", WITH, {}) == ""
    with django_capture_on_commit_callbacks(execute=True):
        sandboxes.remove([Sandbox.objects.get().pk])
    gone = "the sandbox jobO.1.tar.gz was removed and is not kept: upload the same archive again, or name another"
    assert sandboxes.refusal_again(named.id, "ada", WITH, {}) == gone
    assert "belongs to another user" in sandboxes.refusal("ada", WITH)
    give_sandbox("jobO.1.tar.gz", owner="bob")
    assert sandboxes.lacking(named.id, "ada", WITH, line) == ""


@pytest.mark.django_db
def test_code_that_another_user_may_overwrite_or_has_not_sent_yet_is_refused(
    kept: Callable[[], str], make_task: Callable[..., Task]
) -> None:
    own, elsewhere = make_task(), {"sourceURL": "https://elsewhere.example"}
    give_sandbox("a.tar.gz.__ow__", owner="bob")
    sandboxes.claim("bob", {**WITH, **elsewhere})
    overwritten = {"jobParameters": [{"value": "-a a.tar.gz.__ow__"}]}
    assert sandboxes.refusal("ada", overwritten).endswith("belongs to another user, who may overwrite it")
    assert sandboxes.refusal("bob", overwritten) == ""
    assert "belongs to another user" in sandboxes.refusal("ada", {**WITH, **elsewhere})
    with pytest.raises(sandbox_uploads.SandboxRefusedError, match="belongs to another user"):
        give_sandbox("jobO.1.tar.gz", owner="ada")
    # New code of an old task: it counts from now on, also that of another user.
    give_sandbox("jobO.2.tar.gz", owner="bob")
    changes = {"fixedSandbox": "jobO.2.tar.gz"}
    assert sandboxes.refusal_again(own.id, "ada", WITH, changes) == ""
    assert sandboxes.refusal_again(own.id, "ada", {**WITH, **changes}, {}) == ""
    late = {"fixedSandbox": "jobO.3.tar.gz"}
    assert sandboxes.refusal_again(own.id, "ada", WITH, late).endswith("jobO.3.tar.gz is not kept: upload it first")


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["retry", "incexec"])
def test_many_tasks_told_to_run_again_are_refused_where_their_sandbox_is_gone(
    command: str, api: Callable[..., Client], kept: Callable[[], str], make_task: Make, make_dataset: Make
) -> None:
    made = []
    for name in ("gone", "gone", "here", "elsewhere"):
        task = make_task(status="finished", user="ada")
        make_dataset(task, files=2, files_finished=1, files_failed=1)
        params = {"jobParameters": [{"type": "constant", "value": f"-a jobO.{name}.tar.gz -- sh run.sh"}]}
        params |= {"sourceURL": "https://other.example.org"} if name == "elsewhere" else {}
        TaskParams.objects.create(task=task, params={**smallest(), **params})
        if not sandboxes.find(f"jobO.{name}.tar.gz"):
            give_sandbox(f"jobO.{name}.tar.gz")
        sandboxes.note_task(task.id, params)
        made.append(task.id)
    gone = Sandbox.objects.exclude(name="jobO.here.tar.gz")
    sandboxes.remove(gone.values_list("pk", flat=True))
    client, page = api(), Client()
    page.force_login(User.objects.get(username="ada"))
    no = "cannot run again: the sandbox jobO.gone.tar.gz was removed and is not kept: upload the same archive again"
    url, body = "/api/v2/tasks/bulk-commands/", {"command": command, "ids": made, "reason": "x", "preview": False}
    answer = client.post(url, body, "application/json").json()
    assert answer["ids"] == made[2:]
    assert [(one["words"], one["ids"]) for one in answer["refused"]] == [(f"{no}, or name another", made[:2])]
    assert set(Command.objects.values_list("task_id", flat=True)) == set(made[2:])
    alone = page.post(f"/tasks/{made[0]}/do/{command}/", {"reason": "x"})
    assert alone.status_code == 409 and no in alone.content.decode()
    if command == "retry":
        with sent() as seen:
            plan = bulk.preview(ACTS["retry"], bulk.by_ids(made), Caller("ada", frozenset({Role.USER})))
        assert [group.ids for group in plan.refused if group.words.startswith(no)] == [tuple(made[:2])]
        assert sum("sandbox" in one for one in seen) == 1, "one statement for all tasks"
        assert no in page.get(f"/tasks/bulk/?command=retry&ids={made[0]}&ids={made[2]}").content.decode()
        return
    give_sandbox("jobO.new.tar.gz")
    other = {**body, "ids": made[:2], "changes": {"fixedSandbox": "jobO.new.tar.gz"}}
    assert client.post(url, other, "application/json").json()["ids"] == made[:2]
    assert set(Sandbox.objects.get(name="jobO.new.tar.gz").tasks.values_list("id", flat=True)) == set(made[:2])


@pytest.mark.django_db
def test_names_are_claimed_in_one_order_whatever_the_order_in_the_task() -> None:
    """Two transactions that claim the same names would else wait for one another."""
    steps = {"mergeSpec": {"jobParameters": "-a jobO.1.tar.gz"}, "preproSpec": {"jobParameters": "-a jobO.2.tar.gz"}}
    sandboxes.claim("ada", steps, "-a jobO.3.tar.gz")
    assert list(Sandbox.names.order_by("id").values_list("name", flat=True)) == [f"jobO.{n}.tar.gz" for n in (1, 2, 3)]


@pytest.mark.django_db
def test_rows_whose_archive_is_gone_stand_in_no_index_but_that_of_names() -> None:
    """They stay for ever, as their names do."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname IN ('sandboxes_owner', 'sandboxes_last_used')"
        )
        found = dict(cursor.fetchall())
    assert len(found) == 2 and all("WHERE (stored IS NOT NULL)" in definition for definition in found.values()), found
