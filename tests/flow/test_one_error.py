"""Which error explains a job: all pages, mails, rules and calls are asked about the same jobs, and give one answer."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tasks_app.agents import failures, libraries, notification, post_processor
from tasks_app.api.panda.panda_names import JOB
from tasks_app.domain.job_errors import COMPONENTS, ERRORS_OF_J, errors_in
from tasks_app.domain.states import JobStatus
from tasks_app.failures.error_queries import MainError
from tasks_app.models import ErrorClass, File, Job, JobFailure, JobFile, RetryNote, RetryRule, Task
from tasks_app.outcomes.job_outcome import Outcome
from tasks_app.outcomes.outcomes import book
from tasks_app.usage.site_use import top_errors

Make = Callable[..., Any]
NOW = timezone.now()
PILOT, EXE, DDM, BROKER = "pilot_error_code", "exe_error_code", "ddm_error_code", "brokerage_error_code"
DISPATCHER, SERVER, SUP, TRANS = "dispatcher_error_code", "task_buffer_error_code", "sup_error_code", "trans_exit_code"
DIAGS = {part.code_field: part.diag_field for part in COMPONENTS}
NONE = "no error"


class Scene(NamedTuple):
    """How a job ended, and which of its errors explains it, written down by hand."""

    key: str
    fields: dict[str, Any]
    status: JobStatus = JobStatus.FAILED


LONG = "exited-with-" + "9" * 60
SCENES = (
    # One part alone, with and without a text.
    Scene("pilot:1099", {PILOT: 1099, "pilot_error_diag": "cannot copy a file"}),
    Scene("pilot:1099", {PILOT: -1099}),
    Scene("pilot:4711", {PILOT: 4711}),
    Scene("exe:65", {EXE: 65}),
    Scene("exe:-11", {EXE: -11, "exe_error_diag": "segmentation fault"}),
    Scene("ddm:200", {DDM: 200, "ddm_error_diag": "an output is lost"}),
    Scene("brokerage:141", {BROKER: 141}),
    Scene("jobdispatcher:100", {DISPATCHER: 100, "dispatcher_error_diag": "lost heartbeat"}),
    Scene("taskbuffer:300", {SERVER: 300}),
    Scene("sup:7", {SUP: 7, "sup_error_diag": "the supervisor gave up"}),
    Scene("trans:139", {TRANS: "139"}),
    # Nothing is no error: codes of 0, texts without a code, zeros and spaces as exit codes.
    Scene(NONE, {}),
    Scene(NONE, {PILOT: 0, EXE: 0, DDM: 0, SERVER: 0, TRANS: "0"}),
    Scene(NONE, {"pilot_error_diag": "a text without a code", "ddm_error_diag": "another one"}),
    Scene(NONE, {TRANS: "  0 "}),
    Scene(NONE, {TRANS: "000"}),
    Scene("trans:65", {PILOT: 0, EXE: 0, TRANS: " 65 ", "exe_error_diag": "a text without a code"}),
    # Exit codes are texts: one with zeros before it, one that is no number, and one that is long.
    Scene("trans:007", {TRANS: "007"}),
    Scene("trans:killed", {TRANS: "killed"}),
    Scene(f"trans:{LONG[:40]}", {TRANS: LONG}),
    Scene("trans:oom", {PILOT: 1305, TRANS: "oom"}),
    # A payload that failed, as the pilot says, is explained by whatever else is known.
    Scene("pilot:1305", {PILOT: 1305, "pilot_error_diag": "the payload failed"}),
    Scene("pilot:1305", {PILOT: -1305, TRANS: "00"}),
    Scene("exe:65", {PILOT: 1305, EXE: 65, TRANS: "65"}),
    Scene("trans:3", {PILOT: 1305, TRANS: "3", "pilot_error_diag": "the payload failed"}),
    Scene("ddm:201", {PILOT: -1305, DDM: 201}),
    Scene("sup:7", {PILOT: 1305, SUP: 7, TRANS: "1"}),
    # What ended the job comes before what became of it.
    Scene("pilot:1212", {PILOT: 1212, EXE: 137, TRANS: "137"}),
    Scene("pilot:1137", {PILOT: 1137, DDM: 200, "ddm_error_diag": "an output is lost"}),
    Scene("exe:1", {EXE: 1, DDM: 200, BROKER: 141, DISPATCHER: 100, SERVER: 300, SUP: 7, TRANS: "2"}),
    Scene("ddm:200", {DDM: 200, BROKER: 141, DISPATCHER: 100, SERVER: 300, SUP: 7, TRANS: "2"}),
    Scene("brokerage:141", {BROKER: 141, DISPATCHER: 100, SERVER: 300, SUP: 7, TRANS: "2"}),
    Scene("jobdispatcher:100", {DISPATCHER: 100, SERVER: 300, SUP: 7, TRANS: "2"}),
    Scene("taskbuffer:300", {SERVER: 300, SUP: 7, TRANS: "2"}),
    Scene("pilot:1201", {PILOT: 1201, DISPATCHER: 100, "dispatcher_error_diag": "lost heartbeat"}),
    Scene("pilot:1165", {PILOT: 1165, EXE: 0, "exe_error_diag": "The command wrote no out.root"}),
    # A job that was told to stop: whatever else is known of it came of that.
    Scene("taskbuffer:150", {PILOT: 1144, EXE: 143, TRANS: "143", SERVER: 150, "task_buffer_error_diag": "overdue"}),
    # Nobody killed a job whose ranges of events failed: what its pilot said of them explains it.
    Scene("pilot:1220", {PILOT: 1220, "pilot_error_diag": "The command ended with 7", SERVER: 118}),
    Scene("taskbuffer:119", {SERVER: 119, "task_buffer_error_diag": "no range could be processed"}),
    Scene("taskbuffer:102", {PILOT: 1137, DDM: 200, SERVER: 102}),
    Scene("taskbuffer:191", {PILOT: 1144, SERVER: 191, "task_buffer_error_diag": "killed"}, JobStatus.CANCELLED),
    Scene("taskbuffer:151", {DISPATCHER: 100, SERVER: 151, TRANS: "0"}, JobStatus.CLOSED),
)


class Asked(NamedTuple):
    """The jobs, each of its own task, with the keys of their errors."""

    keys: dict[int, str]
    failed: dict[int, str]
    task_of: dict[int, int]


@pytest.fixture
def asked(
    tables: None, settings: Any, make_task: Make, make_dataset: Make, make_job: Make, make_user: Make
) -> Iterator[Asked]:
    """Each scene is a job of its own task, with one input; pilots have reported, and now the ends are booked."""
    assert len(SCENES) == 42
    settings.JEDI_EMAIL_URL, settings.EMAIL_BACKEND = "smtp://mail.lab", "django.core.mail.backends.locmem.EmailBackend"
    make_user("ada", email="ada@lab.org")
    write_rules()
    jobs = [running_job(make_task, make_dataset, make_job, scene) for scene in SCENES]
    end(jobs)
    failures.run()
    keys = {job.id: scene.key for job, scene in zip(jobs, SCENES, strict=True)}
    failed = {job.id: scene.key for job, scene in zip(jobs, SCENES, strict=True) if scene.status == JobStatus.FAILED}
    yield Asked(keys, failed, {job.id: job.task_id or 0 for job in jobs})


def running_job(make_task: Make, make_dataset: Make, make_job: Make, scene: Scene, **more: Any) -> Job:
    """A job at a pilot that has reported these errors, with a file that has one attempt left, whoever ends it (DR)."""
    task: Task = make_task(prod_source_label="user", split_rule="DR=1")
    data = make_dataset(task, files=1, files_to_be_used=1, files_used=1)
    job: Job = make_job(task_id=task.id, start_time=NOW - timedelta(hours=1), **more, **scene.fields)
    file = File.objects.create(
        task_id=task.id,
        dataset_id=data.id,
        lfn=f"in.{task.id}",
        type="input",
        status="running",
        job_id=job.id,
        attempt=0,
        max_attempt=1,
        keep_track=True,
    )
    JobFile.objects.create(
        job_id=job.id, task_id=task.id, dataset_id=data.id, file_id=file.id, type="input", lfn=file.lfn
    )
    return job


def end(jobs: list[Job]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        ends = [Outcome(job.id, job.task_id, scene.status, by="adder") for job, scene in zip(jobs, SCENES, strict=True)]
        assert book(cursor.cursor, ends) == len(jobs)


def write_rules() -> None:
    """One rule for each error of each scene, which only says of which error it is."""
    RetryRule.objects.all().delete()
    ErrorClass.objects.all().delete()
    every = {error for scene in SCENES for error in errors_in(scene.fields)}
    wanted = {(error.component, error.number) for error in every if error.number is not None}
    for source, code in sorted(wanted):
        RetryRule.objects.create(error_source=source, error_code=code, action="limit_retry", parameters="maxAttempt=9")


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.content
    return html.unescape(answer.content.decode())


def listed(answer: Any) -> dict[int, dict[str, str]]:
    """The rows of a page with a list, as their cells give their values."""
    assert not answer.context["faults"]
    return {key: {cell.column.name: cell.raw for cell in row} for key, row in answer.context["table"]}


def the_key(found: list[str]) -> str:
    assert len(found) <= 1, found
    return found[0] if found else NONE


def test_the_database_and_the_lists_name_the_error(asked: Asked, client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT j.pandaid, coalesce((SELECT component || ':' || code FROM {ERRORS_OF_J} e ORDER BY rank LIMIT 1), %s)
                  FROM jobs j""",  # noqa: S608
            [NONE],
        )
        assert dict(cursor.fetchall()) == asked.keys
    assert {job: key or NONE for job, key in Job.objects.annotate(k=MainError()).values_list("pk", "k")} == asked.keys

    client.force_login(User.objects.get(username="ada"))
    sheet = client.get("/api/v2/jobs/?columns=id,error&format=csv")
    rows = csv.DictReader(io.StringIO(b"".join(sheet.streaming_content).decode()))  # type: ignore[attr-defined]
    assert {int(row["id"]): row["error"] or NONE for row in rows} == asked.keys
    for key in sorted(set(asked.keys.values()) - {NONE}):
        page = client.get("/jobs/", {"error": key})
        assert set(listed(page)) == {job for job, own in asked.keys.items() if own == key}, key
    page = client.get("/jobs/")
    assert {job: row["error"] or NONE for job, row in listed(page).items()} == asked.keys
    assert text(page).count('data-label="Error"') == len(SCENES)
    found = {job: row["error"] for job, row in listed(client.get("/errors/jobs/")).items()}
    assert {job: NONE if key == "none" else key for job, key in found.items()} == asked.failed
    booked = JobFailure.objects.select_related("fingerprint")
    assert {failure.id: failure.fingerprint.key for failure in booked} == asked.failed


def test_each_job_has_its_error_on_its_pages_and_in_calls(asked: Asked, client: Client, api: Make) -> None:
    panda = api()
    client.force_login(User.objects.get(username="ada"))
    for job, key in asked.keys.items():
        page = text(client.get(f"/jobs/{job}/"))
        assert the_key(re.findall(r'<strong class="mono">(.+?)</strong>', page)) == key, job
        why = text(client.get(f"/jobs/{job}/why/"))
        assert (f"({key})" in why) == (key != NONE), job
        assert (f"({key})" in str(client.get(f"/api/v2/jobs/{job}/why/").json())) == (key != NONE)
        one = client.get(f"/api/v2/jobs/{job}/").json()
        assert (one["error"] or NONE) == key
        assert bool(one["error_says"]) == (key != NONE)
        task = asked.task_of[job]
        calls = panda.get(f"/api/v1/task/get_job_descriptions?task_id={task}").json()["data"]
        (told,) = calls
        found = errors_in({name: told[panda] for panda, name in JOB.items()})
        assert (found[0].key if found else NONE) == key, "PanDA's clients are sent all codes"
    both = sorted(asked.keys)[:6]
    page = text(client.get(f"/jobs/compare/?ids={','.join(map(str, both))}"))
    assert all(asked.keys[job] in page for job in both)


def test_each_task_has_the_error_of_its_job_on_its_pages(asked: Asked, client: Client) -> None:
    client.force_login(User.objects.get(username="ada"))
    for job, key in asked.failed.items():
        task = asked.task_of[job]
        groups = client.get(f"/tasks/{task}/").context["errors"]
        assert [(g.error.key if g.error else NONE, g.jobs, g.last) for g in groups] == [(key, 1, job)]
        assert [row["print"].key for row in client.get(f"/tasks/{task}/errors/").context["rows"]] == [key]
        (row,) = listed(client.get(f"/tasks/{task}/inputs/")).values()
        assert (row["last_failed_job"], row["last_error"] or NONE) == (str(job), key)
    page = client.get("/errors/").context
    assert page["failures"] == len(asked.failed)
    assert {row["print"].key for row in page["rows"]} <= set(asked.failed.values())
    worst = top_errors("SITE_A", NOW - timedelta(days=1), timezone.now() + timedelta(minutes=1), most=100)
    assert {error.key for error in worst} == set(asked.failed.values())
    wasted = client.get("/users/ada/").context["waste"]
    assert wasted and {row.fingerprint.key for row in wasted} <= set(asked.failed.values())


def test_the_rules_and_their_tester_take_the_same_error_first(asked: Asked, client: Client) -> None:
    client.force_login(User.objects.create_superuser("grace"))
    for job, key in asked.failed.items():
        found = errors_in(vars(Job.objects.get(pk=job)))
        notes = RetryNote.objects.filter(job_id=job, code="retry_limited").values_list("detail", flat=True)
        named = [re.match(r"(\w+) error (-?\d+) ", note).expand(r"\1:\2") for note in notes]  # type: ignore[union-attr]
        numbers = [f"{error.component}:{error.number}" for error in found if error.number is not None]
        assert named == numbers[:1], job
        tried = client.get(reverse("admin:tasks_app_retryrule_try"), {"_try": "1", "_try-job": job})
        if key == NONE:
            assert "it has no error" in text(tried)
            continue
        context = tried.context["tried"]
        assert [error for error, _ in context["errors"]] == found
        assert found[0].key == key
        assert f"<h3>{key.replace(':', ' ')}" in text(tried)
        assert context["error"] == next((error for error in found if error.number is not None), None)
        if found[0].number is not None:
            # The same when the error is given by hand, with the sign that the pilot gave it.
            part, code = key.split(":")
            sign = -1 if part == "pilot" else 1
            given = {"_try": "1", "_try-source": part, "_try-code": sign * int(code)}
            by_hand = client.get(reverse("admin:tasks_app_retryrule_try"), given).context["tried"]
            assert [rule.rule.id for rule in by_hand["applied"]] == [rule.rule.id for rule in context["applied"]]


def test_dialogs_and_mails_name_the_same_error(asked: Asked, client: Client, api: Make) -> None:
    panda = api()
    client.force_login(User.objects.get(username="ada"))
    post_processor.run(), post_processor.run()
    notification.run()
    sent = {int(re.search(r"Task (\d+) ", letter.subject).group(1)): letter for letter in mail.outbox}  # type: ignore[union-attr]
    for job, key in asked.failed.items():
        task = Task.objects.get(pk=asked.task_of[job])
        assert task.status == "failed"
        assert the_key(re.findall(r"1 × (\S+) \(", task.error_dialog or "")) == key
        letter = sent[task.id]
        assert the_key(re.findall(r"\[(\w+:[^\]]+)\]", letter.body)) == key
        assert the_key(re.findall(r"<code>(\w+:[^<]+)</code>", letter.alternatives[0][0])) == key
        page = text(client.get(f"/tasks/{task.id}/"))
        assert (f"1 × {key} (" in page) == (key != NONE)
        assert (f"1 × {key} (" in text(client.get(f"/tasks/{task.id}/why/"))) == (key != NONE)
        told = panda.get(f"/api/v1/task/get_details?task_id={task.id}&include_status=true").json()["data"]
        assert (f"1 × {key} (" in (told["errorDialog"] or "")) == (key != NONE)


def test_jobs_that_end_with_their_library_are_told_the_error_of_its_build(
    asked: Asked, make_dataset: Make, make_job: Make
) -> None:
    waiting = {}
    for job, task_id in asked.task_of.items():
        library = make_dataset(Task.objects.get(pk=task_id), type="lib", status="running", name=f"lib.{task_id}")
        file = File.objects.create(
            task_id=task_id, dataset_id=library.id, lfn="lib.tgz", type="lib", status="failed", job_id=job
        )
        waits = make_job(task_id=task_id, status="defined")
        JobFile.objects.create(
            job_id=waits.id, task_id=task_id, dataset_id=library.id, file_id=file.id, type="lib", lfn="lib.tgz"
        )
        waiting[waits.id] = job
    libraries.run(limit=100)
    for closed in Job.objects.filter(pk__in=waiting):
        key, said = asked.keys[waiting[closed.id]], closed.task_buffer_error_diag or ""
        assert (closed.status, closed.task_buffer_error_code) == ("closed", 300)
        assert the_key(re.findall(r": (\w+:\S+),", said)) == key
