"""Reading and commanding: what each resource shows, filters and pages, and who may command."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from brokerage_app.models import GlobalShare, Queue, VerdictRecord
from jedisite.agents.passes import synchronise_after_migrate
from jedisite.models import Agent, ApiToken, AuditEntry
from tasks_app.domain.states import TaskStatus
from tasks_app.domain.task_commands import COMMAND_ACCEPTED_IN, COMMANDS, Giver, TaskCommand
from tasks_app.models import (
    Command,
    Dataset,
    File,
    Job,
    JobArchive,
    JobFile,
    JobMetadata,
    JobParams,
    JobStatusLog,
    Task,
    TaskParams,
    TaskStatusLog,
)
from tests.flow.driving import parameters, reads
from tests.tasks_app.params.dictionaries import smallest

TASKS = "/api/v2/tasks/"
pytestmark = pytest.mark.django_db
Api = Callable[..., Client]
Make = Callable[..., Any]


def ids(answer: Any) -> list[int]:
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def test_pages_walk_over_all_tasks_newest_first_and_back(api: Api, make_task: Make) -> None:
    client = api()
    made = [make_task().id for _ in range(7)][::-1]
    seen, url, previous = [], f"{TASKS}?page_size=3", None
    while url:
        answer = client.get(url)
        seen += ids(answer)
        url, previous = answer.json()["next"], answer.json()["previous"]
    assert seen == made
    assert ids(client.get(previous)) == made[3:6]


@pytest.mark.parametrize(
    ("query", "chosen"),
    [
        ("status=done", [1]),
        ("status=done,failed", [2, 1]),
        ("user=eve", [2]),
        ("name=SPECIAL", [3]),
        ("type=prod", [4]),
        ("parent=77", [5]),
        ("created_before=2020-01-01T00:00:00Z", [6]),
        ("created_after=2020-01-01T00:00:00Z&user=eve", [2]),
        ("label=managed", [4]),
    ],
)
def test_tasks_are_filtered(api: Api, make_task: Make, query: str, chosen: list[int]) -> None:
    make_task(id=1, status="done")
    make_task(id=2, status="failed", user="eve")
    make_task(id=3, name="user.ada.special.one")
    make_task(id=4, task_type="prod", prod_source_label="managed")
    make_task(id=5, parent_id=77)
    make_task(id=6, creation_date=timezone.now() - timedelta(days=365 * 20))
    assert ids(api().get(f"{TASKS}?{query}")) == chosen


@pytest.mark.parametrize("path", [TASKS, "/api/v2/jobs/", f"{TASKS}5/jobs/", f"{TASKS}5/datasets/", f"{TASKS}5/log/"])
def test_lists_cost_the_same_for_any_number(
    api: Api, make_task: Make, make_job: Make, make_dataset: Make, django_assert_max_num_queries: Any, path: str
) -> None:
    task = make_task(id=5)
    for number in range(30):
        make_task()
        make_job(task_id=task.id)
        make_dataset(task, name=f"d{number}")
        TaskStatusLog.objects.create(task_id=task.id, status="running", by="x")
    client = api()
    with django_assert_max_num_queries(5):
        assert len(ids(client.get(f"{path}?page_size=30"))) == 30


def test_a_task_shows_what_stands_around_it(api: Api, make_task: Make, make_job: Make, make_dataset: Make) -> None:
    task = make_task(error_dialog="waits for a site", split_rule="NF=2")
    make_dataset(task, files=10, files_to_be_used=10, files_used=6, files_finished=4, files_failed=1)
    make_dataset(task, name="second", master_id=1, files=99)
    make_dataset(task, name="out", type="output", files=7)
    for status in ("running", "running", "finished"):
        make_job(task_id=task.id, status=status)
    JobArchive.objects.create(id=3, task_id=task.id, status="finished")
    for sentence in ("0 of 2 sites.", "1 of 2 sites."):
        VerdictRecord.objects.create(
            task_id=task.id, chosen=[], skipped=[["B", "memory", "too small"]], sentence=sentence
        )
    found = api().get(f"{TASKS}{task.id}/").json()
    assert found["progress"] == {"total": 10, "finished": 4, "failed": 1, "working": 1, "waiting": 4, "percent": 40}
    assert found["jobs"] == {"finished": 2, "running": 2}
    assert [d["name"] for d in found["datasets"]] == ["user.ada:data", "second", "out"]
    assert found["datasets"][0]["files_finished"] == 4
    assert found["verdict"]["sentence"] == "1 of 2 sites." and found["error_dialog"] == "waits for a site"
    assert found["split_rule"] == "NF=2" and not {"locked_by", "fence"} & set(found)


def test_what_belongs_to_a_task_is_listed(api: Api, make_task: Make, make_job: Make, make_dataset: Make) -> None:
    client, task, other = api(), make_task(), make_task()
    dataset = make_dataset(task)
    make_dataset(other)
    job = make_job(task_id=task.id)
    make_job(task_id=other.id)
    JobArchive.objects.create(id=3, task_id=task.id, status="failed")
    File.objects.create(id=1, task_id=task.id, dataset_id=dataset.id, lfn="a", type="input", status="ready")
    File.objects.create(id=2, task_id=task.id, dataset_id=dataset.id, lfn="b", type="input", status="finished")
    assert ids(client.get(f"{TASKS}{task.id}/datasets/")) == [dataset.id]
    assert ids(client.get(f"{TASKS}{task.id}/jobs/")) == [job.id]
    assert ids(client.get(f"{TASKS}{task.id}/jobs/?archived=true")) == [3]
    assert ids(client.get(f"{TASKS}{task.id}/jobs/?status=failed")) == []
    assert ids(client.get(f"/api/v2/datasets/{dataset.id}/files/")) == [1, 2]
    assert ids(client.get(f"/api/v2/datasets/{dataset.id}/files/?status=finished")) == [2]


@pytest.mark.parametrize("archived", [False, True])
def test_a_job_is_found_in_the_archive_too(api: Api, make_job: Make, archived: bool) -> None:
    model = JobArchive if archived else Job
    model._default_manager.create(id=9, task_id=1, status="failed", exe_error_code=3, secret_hash=b"x")
    JobParams.objects.create(id=9, params="--events 5")
    JobMetadata.objects.create(id=9, metadata={"nEvents": 5})
    JobFile.objects.create(job_id=9, type="log", lfn="l.tgz")
    JobStatusLog.objects.create(job_id=9, status="failed", by="pilot")
    found = api().get("/api/v2/jobs/9/").json()
    assert found["archived"] is archived and found["exe_error_code"] == 3
    assert found["params"] == "--events 5" and found["metadata"] == {"nEvents": 5}
    assert [f["lfn"] for f in found["files"]] == ["l.tgz"] and [entry["by"] for entry in found["log"]] == ["pilot"]
    assert not {"secret_hash", "fence"} & set(found)


def test_a_command_is_queued_and_listed(api: Api, make_task: Make) -> None:
    client, task = api(), make_task()
    answer = client.post(
        f"{TASKS}{task.id}/commands/", {"command": "finish", "reason": "enough", "soft": True}, "application/json"
    )
    assert answer.status_code == 202
    assert client.get(f"{TASKS}{task.id}/commands/").json()["results"] == [answer.json()]
    command = Command.objects.get()
    assert (command.name, command.owner, command.comment, command.parameters) == (
        "finish",
        "ada",
        "enough",
        {"soft": True},
    )
    assert AuditEntry.objects.filter(actor="ada", action="finish", object_id=str(task.id)).exists()


NEEDS: dict[str, dict[str, Any]] = {
    TaskCommand.REASSIGN: {"site": "SITE_B"},
    TaskCommand.REMOVE_FILES: {"files": "user.ada.in.1"},
}


def with_failed_file(task: Task) -> None:
    read = Dataset.objects.create(task=task, name="user.ada.in", type="input", files=1, files_failed=1)
    for number, status in ((1, "ready"), (2, "staging")):
        File.objects.create(
            task_id=task.id, dataset_id=read.pk, lfn=f"user.ada.in.{number}", type="input", status=status
        )


@pytest.mark.parametrize("command", list(TaskCommand))
def test_every_command_is_accepted_or_refused_in_every_state_with_a_sentence(
    api: Api, make_task: Make, command: TaskCommand
) -> None:
    Queue.objects.create(name="SITE_B", site_name="B")
    client = api("production")
    for status in TaskStatus:
        task = make_task(status=status, prod_source_label="user")
        with_failed_file(task)
        TaskParams.objects.create(task=task, params=parameters("user.ada.t", reads("user.ada.in")))
        body = {"command": command, **NEEDS.get(command, {})}
        answer = client.post(f"{TASKS}{task.id}/commands/", body, "application/json")
        if status in COMMAND_ACCEPTED_IN[command]:
            assert answer.status_code == 202
        else:
            assert answer.status_code == 409 and not Command.objects.filter(task=task).exists()
            again = status == "broken" and command in ("retry", "incexec")
            detail = answer.json()["detail"]
            assert f"is {status}{' and cannot run again' if again else '; '}" in detail and len(detail) < 250


@pytest.mark.parametrize("command", list(TaskCommand))
def test_owners_give_their_commands_and_operators_theirs(api: Api, make_task: Make, command: TaskCommand) -> None:
    Queue.objects.create(name="SITE_B", site_name="B")
    status = sorted(COMMAND_ACCEPTED_IN[command])[0]
    codes = {}
    for role in ("user", "shifter", "production", "administrator"):
        task = make_task(status=status, prod_source_label="user", user="ada")
        with_failed_file(task)
        body = {"command": command, **NEEDS.get(command, {})}
        codes[role] = api(role).post(f"{TASKS}{task.id}/commands/", body, "application/json").status_code
    owner = 403 if COMMANDS[command].giver is Giver.PRODUCTION else 202
    assert codes == {"user": owner, "shifter": 403, "production": 202, "administrator": 202}


def test_limits_on_retries_are_for_operators_to_ignore(api: Api, make_task: Make) -> None:
    body = {"command": "retry", "transcend": True}
    for role, code in (("user", 403), ("production", 202)):
        task = make_task(status="finished", user="ada")
        Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
        assert api(role).post(f"{TASKS}{task.id}/commands/", body, "application/json").status_code == code


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        ({"command": "retry", "sole": True, "keep": False}, {"sole": True}),
        (
            {"command": "incexec", "changes": {"nFilesPerJob": 5, "site": None}},
            {"changes": {"nFilesPerJob": 5, "site": None}},
        ),
        ({"command": "incexec", "changes": {}}, None),
        ({"command": "incexec", "changes": {"loopingCheck": False}}, {"changes": {"noLoopingCheck": True}}),
    ],
)
def test_parameters_of_a_command_are_stored(api: Api, make_task: Make, body: Any, stored: Any) -> None:
    task = make_task(status="finished")
    Dataset.objects.create(task=task, name="user.ada.in", type="input", files=3, files_failed=1)
    answer = api().post(f"{TASKS}{task.id}/commands/", body, "application/json")
    assert answer.status_code == 202 and Command.objects.get().parameters == stored


@pytest.mark.parametrize(
    ("role", "priority", "code"),
    [("user", 1000, 202), ("user", 1001, 403), ("user", 99_999, 403), ("production", 99_999, 202), ("user", None, 202)],
)
def test_nobody_lifts_own_tasks_by_running_them_again_above_what_a_submission_may_have(
    api: Api, make_task: Make, role: str, priority: int | None, code: int
) -> None:
    client = api(role)
    for name in ("currentPriority", "priority"):
        task = make_task(status="done", user="ada")
        body = {"command": "incexec", "changes": {name: priority}}
        answers = [client.post(f"{TASKS}{task.id}/commands/", body, "application/json")]
        many = {**body, "ids": [task.id], "reason": "x"}
        refused = client.post(f"{TASKS}bulk-commands/", many, "application/json")
        v1 = {"task_id": task.id, "new_parameters": {name: priority}}
        called = client.post("/api/v1/task/retry", v1, "application/json")
        assert [a.status_code for a in answers] == [code]
        assert ("needs the right to steer" in str(refused.json())) is (code == 403), refused.content
        assert ("needs the right to steer" in called.json()["message"]) is (code == 403)
    stored = Command.objects.values_list("parameters", flat=True)
    assert code == 202 or not stored


def test_a_reason_is_one_line_wherever_it_is_kept(api: Api, make_task: Make) -> None:
    client, task = api("production"), make_task(status="running", user="ada")
    lines = "for the talk\r\nBcc: eve\u2028x"
    for where, body in (
        (f"{task.id}/commands/", {"command": "pause", "reason": lines}),
        (f"{task.id}/changes/", {"priority": 7, "reason": lines}),
    ):
        assert client.post(f"{TASKS}{where}", body, "application/json").status_code in (200, 202)
    assert Command.objects.get().comment == "for the talk Bcc: eve x"
    assert set(AuditEntry.objects.values_list("reason", flat=True)) == {"for the talk Bcc: eve x"}
    body = {"priority": 8, "reason": " \r\n "}
    assert client.post(f"{TASKS}{task.id}/changes/", body, "application/json").status_code == 422


def test_changes_bring_no_more_work_than_a_task_may_have(api: Api, make_task: Make) -> None:
    task = make_task(status="done", user="ada")
    TaskParams.objects.update_or_create(task_id=task.id, defaults={"params": smallest()})
    body = {"command": "incexec", "changes": {"nEvents": 4_000_000}}
    answer = api().post(f"{TASKS}{task.id}/commands/", body, "application/json")
    assert answer.status_code == 422, answer.content
    (error,) = answer.json()["errors"]
    assert error["field"] == "changes.nEvents" and "give a larger nEventsPerJob" in error["message"]


class TestChanges:
    def test_a_task_at_work_is_changed_and_it_is_on_record(self, api: Api, make_task: Make, make_job: Make) -> None:
        GlobalShare.objects.create(name="Express", value=1)
        task = make_task(split_rule="NF=2", task_priority=100, current_priority=100)
        make_job(task_id=task.id, status="activated", current_priority=100)
        body = {
            "priority": 700,
            "gshare": "Express",
            "attributes": {"ramCount": 3000, "goal": 95.5},
            "split_rule": {"nFilesPerJob": 5, "nGBPerJob": 10},
            "reason": "they asked",
        }
        answer = api("production").post(f"{TASKS}{task.id}/changes/", body, "application/json")
        assert answer.status_code == 200, answer.content
        assert answer.json()["done"]["priority"] == "the priority is 700, also of 1 queued job"
        task.refresh_from_db()
        assert (task.current_priority, task.gshare, task.ram_count, task.goal) == (700, "Express", 3000, 955)
        assert task.split_rule == "NF=5,NG=10"
        assert AuditEntry.objects.filter(actor="production", reason="they asked").count() == 4
        assert "change priority: priority 700 (they asked)" in str(
            list(TaskStatusLog.objects.filter(task_id=task.id).values_list("reason", flat=True))
        )

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"reason": "x"}, ""),
            ({"priority": 5}, "reason"),
            ({"priority": -1, "reason": "x"}, "priority"),
            ({"priority": "5", "reason": "x"}, "priority"),
            ({"attributes": {"site": "A"}, "reason": "x"}, "attributes.site"),
            ({"attributes": {"ramCount": "a"}, "reason": "x"}, "attributes.ramCount"),
            ({"attributes": {}, "priority": 5, "reason": "x"}, "attributes"),
            ({"split_rule": {}, "priority": 5, "reason": "x"}, "split_rule"),
            ({"attributes": {}, "reason": "x"}, "attributes"),
            ({"split_rule": {}, "reason": "x"}, "split_rule"),
            ({"attributes": {"ramCount": None}, "reason": "x"}, "attributes.ramCount"),
            ({"split_rule": {"nEventsPerJob": 3}, "reason": "x"}, "split_rule.nEventsPerJob"),
            ({"split_rule": {"nFilesPerJob": -3}, "reason": "x"}, "split_rule.nFilesPerJob"),
            ({"priority": 7, "split_rule": {"nFilesPerJob": -3}, "reason": "x"}, "split_rule.nFilesPerJob"),
            ({"colour": "red", "reason": "x"}, "colour"),
        ],
    )
    def test_a_bad_change_names_the_field_and_changes_nothing(
        self, api: Api, make_task: Make, body: Any, field: str
    ) -> None:
        task = make_task(current_priority=100)
        answer = api("production").post(f"{TASKS}{task.id}/changes/", body, "application/json")
        assert answer.status_code == 422, answer.content
        assert field in [e["field"] for e in answer.json()["errors"]]
        task.refresh_from_db()
        assert task.current_priority == 100

    @pytest.mark.parametrize("events", [None, 0])
    def test_a_walltime_is_taken_where_the_events_of_an_input_are_not_known(
        self, api: Api, make_task: Make, make_dataset: Make, events: int | None
    ) -> None:
        """Brokers go by it there, and so does advice."""
        task = make_task(cpu_time=10, cpu_time_unit="HS06sPerEvent")
        dataset = make_dataset(task, files=2)
        for number, of_file in enumerate((100, events)):
            values = {"lfn": f"f{number}", "type": "input", "status": "ready", "events": of_file}
            File.objects.create(task_id=task.id, dataset_id=dataset.id, **values)
        body = {"attributes": {"walltime": 600}, "reason": "x"}
        assert api().post(f"{TASKS}{task.id}/changes/", body, "application/json").status_code == 200

    @pytest.mark.parametrize(
        ("columns", "given", "refused"),
        [
            ({"cpu_time": 0, "cpu_time_unit": "HS06sPerEvent"}, {"walltime": 600}, False),
            ({"cpu_time": 10, "cpu_time_unit": "HS06sPerEvent"}, {"walltime": 600}, True),
            ({"cpu_time_unit": "HS06sPerEvent"}, {"walltime": 600, "cpuTime": 10}, True),
            (
                {"cpu_time": 10, "cpu_time_unit": "HS06sPerEvent", "walltime_unit": "kSI2kseconds"},
                {"walltime": 600},
                False,
            ),
            ({"cpu_time": 10, "cpu_time_unit": "HS06sPerEvent"}, {"walltime": -1}, False),
            ({"cpu_time": 10, "cpu_time_unit": "HS06sPerEvent", "walltime": 60}, {"cpuTime": 20}, False),
            ({}, {"walltime": 600}, False),
        ],
    )
    def test_a_walltime_that_would_change_nothing_is_refused(
        self, api: Api, make_task: Make, make_dataset: Make, columns: Any, given: Any, refused: bool
    ) -> None:
        task = make_task(**columns)
        values = {"lfn": "f", "type": "input", "status": "ready", "events": 100}
        File.objects.create(task_id=task.id, dataset_id=make_dataset(task, files=1).id, **values)
        answer = api().post(f"{TASKS}{task.id}/changes/", {"attributes": given, "reason": "x"}, "application/json")
        assert answer.status_code == (422 if refused else 200), answer.content
        if refused:
            (error,) = answer.json()["errors"]
            assert error["field"] == "attributes.walltime"
            assert error["message"] == (
                "It has no effect: the walltime of jobs is calculated from cpuTime (10). Change cpuTime instead."
            )

    def test_all_faults_are_told_at_once(self, api: Api, make_task: Make) -> None:
        task = make_task(current_priority=100)
        body = {
            "priority": "high",
            "gshare": "Nowhere",
            "attributes": {"ramCount": "a", "corCount": 1},
            "split_rule": {"nFilesPerJob": -3, "nEventsPerJob": 3},
            "colour": "red",
        }
        answer = api("production").post(f"{TASKS}{task.id}/changes/", body, "application/json")
        told = {e["field"] for e in answer.json()["errors"]}
        assert answer.status_code == 422 and told == {
            "priority",
            "gshare",
            "attributes.ramCount",
            "attributes.corCount",
            "split_rule.nFilesPerJob",
            "split_rule.nEventsPerJob",
            "colour",
            "reason",
        }

    @pytest.mark.parametrize(
        ("who", "body", "code"),
        [
            ("ada", {"attributes": {"coreCount": 1}, "split_rule": {"nFilesPerJob": 2}}, 200),
            ("ada", {"attributes": {"coreCount": 1}, "priority": 7}, 403),
            ("ada", {"gshare": "Express"}, 403),
            ("eve", {"attributes": {"coreCount": 1}}, 403),
            ("eve", {"colour": "red"}, 403),
        ],
    )
    def test_owners_change_the_needs_and_the_split_rule_of_their_tasks_only(
        self, make_token: Callable[..., str], make_task: Make, who: str, body: Any, code: int
    ) -> None:
        GlobalShare.objects.create(name="Express", value=1)
        task = make_task(user="ada", core_count=4, split_rule="NF=9")
        client = Client(headers={"authorization": f"Bearer {make_token(name=who)}"})
        answer = client.post(f"{TASKS}{task.id}/changes/", {**body, "reason": "as advised"}, "application/json")
        assert answer.status_code == code, answer.content
        task.refresh_from_db()
        assert (task.core_count, task.split_rule) == ((1, "NF=2") if code == 200 else (4, "NF=9"))

    @pytest.mark.parametrize("name", ["coreCount", "walltime", "workDiskCount"])
    def test_a_need_that_running_again_does_not_change_is_refused_with_the_other_door(
        self, api: Api, make_task: Make, name: str
    ) -> None:
        body = {"command": "incexec", "changes": {name: 1}}
        answer = api().post(f"{TASKS}{make_task(status='aborted').id}/commands/", body, "application/json")
        (error,) = answer.json()["errors"]
        assert answer.status_code == 422 and error["field"] == f"changes.{name}"
        assert error["message"].startswith(f"'{name}' cannot be changed when a task runs again. Change it while")
        assert "/changes/" in error["message"]

    def test_an_ended_task_is_not_changed(self, api: Api, make_task: Make) -> None:
        body = {"priority": 700, "reason": "x"}
        answer = api("production").post(f"{TASKS}{make_task(status='done').id}/changes/", body, "application/json")
        assert answer.status_code == 409 and "is done" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("role", "code"), [("anonymous", 401), ("user", 202), ("shifter", 403), ("production", 202), ("administrator", 202)]
)
def test_only_the_owner_and_production_command_a_task(api: Api, make_task: Make, role: str, code: int) -> None:
    task = make_task(user="ada")
    answer = api(role).post(f"{TASKS}{task.id}/commands/", {"command": "kill"}, "application/json")
    assert answer.status_code == code and Command.objects.count() == (code == 202)


def test_another_user_may_not_command_a_task(api: Api, make_task: Make) -> None:
    answer = api("user", name="eve").post(
        f"{TASKS}{make_task(user='ada').id}/commands/", {"command": "kill"}, "application/json"
    )
    assert answer.status_code == 403 and "belongs to ada" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "command"),
        ({"command": "explode"}, "command"),
        ({"command": 5}, "command"),
        ({"command": ["kill"]}, "command"),
        ({"command": "kill", "reason": 5}, "reason"),
        ({"command": "kill", "reason": "x" * 1001}, "reason"),
        ({"command": "retry", "attempts": 3}, "attempts"),
        ({"command": "increase_attempts", "attempts": 0}, "attempts"),
        ({"command": "reassign"}, "site"),
        ({"command": "reassign", "site": "A", "cloud": "B"}, "cloud"),
        ({"command": "reassign", "site": "A", "mode": "gently"}, "mode"),
        ({"command": "reassign", "site": ""}, "site"),
        ({"command": "incexec", "changes": {"nEventsPerJob": 5}}, "changes.nEventsPerJob"),
        ({"command": "incexec", "changes": {"nFilesPerJob": "x"}}, "changes.nFilesPerJob"),
        ({"command": "incexec", "changes": [1]}, "changes"),
        ({"command": "kill", "soft": "yes"}, "soft"),
        ({"command": "kill", "soft": True}, "soft"),
        ({"command": "kill", "hard": True}, "hard"),
        ([], ""),
        ("kill", ""),
        (None, ""),
    ],
)
def test_a_bad_command_names_the_field(api: Api, make_task: Make, body: Any, field: str) -> None:
    task = make_task()
    answer = api().post(f"{TASKS}{task.id}/commands/", json.dumps(body), "application/json")
    assert answer.status_code == 422, answer.content
    assert [e["field"] for e in answer.json()["errors"]] == [field] and Command.objects.count() == 0


def test_queues_agents_and_parameters_are_listed(api: Api) -> None:
    client = api()
    for name in ("B", "A", "C"):
        Queue.objects.create(name=name, site_name=name)
    first = client.get("/api/v2/queues/?page_size=2").json()
    assert [q["name"] for q in first["results"] + client.get(first["next"]).json()["results"]] == ["A", "B", "C"]
    synchronise_after_migrate()
    Agent.objects.filter(name="feeder").update(last_error="Traceback\n  secret\nValueError: bad")
    agents = {a["name"]: a for a in client.get("/api/v2/agents/").json()["results"]}
    assert agents["feeder"]["last_error"] == "ValueError: bad"
    keys = {k["name"]: k for k in Client().get("/api/v2/task-parameters/").json() if not k["inside"]}
    assert keys["taskName"]["required"] is True and keys["nFilesPerJob"]["split_rule"] == "NF"


class TestTokens:
    URL = "/api/v2/tokens/"

    def test_a_token_is_shown_once_and_works(self, api: Api, make_user: Make) -> None:
        people = Client()
        people.force_login(make_user("ada"))
        made = people.post(self.URL, {"name": "laptop", "days": 365}, "application/json")
        assert made.status_code == 201 and made["Cache-Control"] == "no-store"
        token = made.json()["token"]
        mine = Client(headers={"authorization": f"Bearer {token}"})
        assert mine.get(TASKS).status_code == 200
        listed = mine.get(self.URL)
        assert [t["name"] for t in listed.json()["results"]] == ["laptop"] and token not in listed.content.decode()
        assert not ApiToken.objects.filter(name=token).exists()

    def test_a_revoked_token_is_refused_at_once(self, api: Api, make_token: Make) -> None:
        token = make_token()
        mine = Client(headers={"authorization": f"Bearer {token}"})
        row = mine.get(self.URL).json()["results"][0]
        assert mine.delete(f"{self.URL}{row['id']}/").status_code == 204
        assert mine.get(self.URL).status_code == 401

    def test_nobody_sees_or_revokes_the_tokens_of_others(self, api: Api) -> None:
        ada = api()
        row = ada.get(self.URL).json()["results"][0]
        for role in ("production", "administrator"):
            other = api(role)
            assert row["id"] not in ids(other.get(self.URL))
            assert other.delete(f"{self.URL}{row['id']}/").status_code == 404
        assert ada.get(self.URL).status_code == 200

    def test_a_token_made_with_a_token_does_not_outlive_it(self, make_token: Make) -> None:
        token = make_token(days=2)
        answer = Client(headers={"authorization": f"Bearer {token}"}).post(
            self.URL, {"name": "child", "days": 300}, "application/json"
        )
        assert answer.status_code == 201
        parent, child = ApiToken.objects.order_by("id")
        assert abs(child.expires - parent.expires) < timedelta(seconds=5)

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"days": 3}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"name": ""}, "name"),
            ({"name": "x", "days": 366}, "days"),
            ({"name": "x", "days": 0}, "days"),
            ({"name": "x", "days": "3"}, "days"),
            ({"name": "x", "days": 1e300}, "days"),
            ({"name": "a\r\nb"}, "name"),
            ({"name": "a\x1bb"}, "name"),
            ({"name": "a\u2066b"}, "name"),
            ({"name": "x", "kind": "pilot"}, "kind"),
            ({"name": "x", "user": "eve"}, "user"),
        ],
    )
    def test_a_bad_wish_names_the_field(self, api: Api, body: dict[str, Any], field: str) -> None:
        client = api()
        answer = client.post(self.URL, body, "application/json")
        assert answer.status_code == 422 and [e["field"] for e in answer.json()["errors"]] == [field]
        assert ApiToken.objects.count() == 1

    def test_a_session_without_the_csrf_token_makes_none(self, make_user: Make) -> None:
        people = Client(enforce_csrf_checks=True)
        people.force_login(make_user("ada"))
        answer = people.post(self.URL, {"name": "x"}, "application/json")
        assert answer.status_code == 403 and answer["Content-Type"] == "application/problem+json"
        assert ApiToken.objects.count() == 0


def test_dataset_rows_name_their_task(
    api: Api, make_task: Callable[..., Task], make_dataset: Callable[..., Dataset]
) -> None:
    task = make_task()
    make_dataset(task)
    assert api().get(f"{TASKS}{task.id}/datasets/").json()["results"][0]["task_id"] == task.id


def test_shifters_set_the_status_of_a_queue_for_a_time_and_its_history_tells(api: Api) -> None:
    Queue.objects.create(name="S/A_1", site_name="A")
    shifter, where = api("shifter"), "/api/v2/queues/S/A_1/"
    until = (timezone.now() + timedelta(hours=3)).isoformat()
    body = {"status": "brokeroff", "reason": "storage is down", "until": until}
    made = shifter.post(f"{where}status/", body, "application/json")
    assert made.status_code == 201 and made.json()["after"] == "online"
    rows = shifter.get(f"{where}history/").json()["results"]
    assert [(row["old"], row["new"], row["by"]) for row in rows] == [
        ("online", "brokeroff", "shifter"),
        ("", "online", ""),
    ]
    wrong = [
        ({**body, "status": "gone"}, "status"),
        ({**body, "reason": ""}, "reason"),
        ({**body, "until": "2001-01-01T00:00:00Z"}, "until"),
        (body, "status"),
    ]
    for sent, field in wrong:
        answer = shifter.post(f"{where}status/", sent, "application/json")
        assert answer.status_code == 422 and [e["field"] for e in answer.json()["errors"]] == [field]
    assert shifter.post("/api/v2/queues/B/status/", body, "application/json").status_code == 404
    assert shifter.get("/api/v2/queues/B/history/").status_code == 404
    assert AuditEntry.objects.get().details["after"] == "online"
