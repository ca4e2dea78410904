"""Acts on one task or job and on many: what is said beforehand, what is done, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from brokerage_app.models import Queue
from jedisite.models import AuditEntry
from tasks_app.commands.act_words import field_of
from tasks_app.domain.task_commands import COMMANDS
from tasks_app.models import Command, Dataset, Job, Task, TaskParams, TaskStatusLog
from tasks_app.params.acts import ACTS
from tasks_app.submission import parameter_changes
from tests.statements import sent
from tests.tasks_app.params.dictionaries import smallest

MOST_QUERIES = 12
pytestmark = pytest.mark.django_db
Make = Callable[..., Any]


def text_of(answer: Any) -> str:
    return str(answer.content.decode()).replace("\u202f", " ")


def test_an_act_on_a_task_is_explained_asked_for_its_reason_and_noted(
    reader: Client, busy_task: Task, django_assert_max_num_queries: Any
) -> None:
    url = f"/tasks/{busy_task.id}/do/kill/"
    assert url in text_of(reader.get(f"/tasks/{busy_task.id}/"))
    with django_assert_max_num_queries(MOST_QUERIES):
        text = text_of(reader.get(url))
    assert f"<h1>Kill task {busy_task.id}?</h1>" in text
    assert "12 jobs at 3 sites" in text and "(6 queued, 6 with pilots)" in text and "stay ended" in text
    answer = reader.post(url, {"reason": " "})
    assert answer.status_code == 409 and "Please give a reason" in text_of(answer) and not Command.objects.exists()
    answer = reader.post(url, {"reason": "wrong <input>"}, follow=True)
    command, entry = Command.objects.get(), AuditEntry.objects.get()
    assert (command.task_id, command.name, command.owner, command.comment) == (
        busy_task.id,
        "kill",
        "ada",
        "wrong <input>",
    )
    assert (entry.action, entry.object_id, entry.reason) == ("kill", str(busy_task.id), "wrong <input>")
    assert "wrong &lt;input&gt;" in text_of(answer)


@pytest.mark.parametrize("command", ["retry", "incexec"])
def test_a_retry_says_how_many_attempts_failed_files_get(
    reader: Client, make_task: Make, make_dataset: Make, command: str
) -> None:
    submitted = ({"maxAttempt": 2}, {}, {"maxAttempt": 7}, {"maxAttempt": 10, "maxFailure": 2})
    tasks = [make_task(status="finished", split_rule=rule) for rule in (None, None, "DR=1", None)]
    for task, params in zip(tasks, submitted, strict=True):
        TaskParams.objects.create(task=task, params=params)
        make_dataset(task, files=4, files_failed=3)
    texts = [text_of(reader.get(f"/tasks/{task.id}/do/{command}/")) for task in tasks]
    for text, more in zip(
        texts, ("2 more attempts", "3 more attempts", "1 more attempt", "2 more attempts"), strict=True
    ):
        assert f"3 failed input files</strong>: tried again, with {more} each." in text
    Dataset.objects.filter(task=tasks[1]).update(files_failed=1)
    alone = text_of(reader.get(f"/tasks/{tasks[1].id}/do/{command}/"))
    assert "1 failed input file</strong>: tried again, with 3 more attempts." in alone
    Dataset.objects.filter(task=tasks[1]).update(files_failed=3)
    query = "&".join(f"ids={task.id}" for task in tasks)
    bulk = text_of(reader.get(f"/tasks/bulk/?command={command}&{query}"))
    assert (
        command == "incexec" or "12 failed input files</strong>: tried again, with 1 to 3 more attempts each." in bulk
    )


@pytest.mark.parametrize(
    ("changes", "path", "form", "fault"),
    [
        ({}, "resume", {}, "resume is accepted in"),
        ({}, "increase_attempts", {"attempts": "1000"}, "More attempts for each file: The maximum is 100"),
        ({}, "increase_attempts", {"attempts": "many"}, "More attempts for each file: Expected a whole number"),
        ({}, "needs", {}, "<span>No change is given."),
        ({}, "pause", {"reason": "x" * 1001}, "at most 1000"),
        ({}, "pause", {"reason": "a\x00b"}, "plain characters"),
        ({}, "avoid_site", {"site": "a\x00b"}, "U+0000"),
        ({}, "avoid_site", {}, "This field is required"),
        ({"status": "done"}, "avoid_site", {"site": "SITE_B"}, "makes no more jobs"),
        ({"status": "finished"}, "incexec", {"changes": "{"}, "not valid JSON"),
    ],
)
def test_an_act_that_cannot_be_done_is_refused(
    reader: Client, make_task: Make, changes: dict[str, str], path: str, form: dict[str, str], fault: str
) -> None:
    task = make_task(**changes)
    Dataset.objects.create(task=task, name="d", type="input", files=2, files_failed=1)
    answer = reader.post(f"/tasks/{task.id}/do/{path}/", {"reason": "x", **form})
    assert answer.status_code == 409 and fault in text_of(answer)
    assert not Command.objects.exists() and not AuditEntry.objects.exists()


def test_all_that_is_wrong_with_a_form_is_said_at_once(reader: Client, make_task: Make) -> None:
    task = make_task(status="finished")
    Dataset.objects.create(task=task, name="d", type="input", files=2, files_failed=1)
    changes = '{"nFilesPerJob": -1, "colour": 1}'
    said = text_of(reader.post(f"/tasks/{task.id}/do/incexec/", {"reason": " ", "changes": changes}))
    for fault in ("Please give a reason.", "nFilesPerJob: ", "colour: "):
        assert fault in said, fault
    assert not Command.objects.exists()


def test_a_command_that_waits_decides_what_is_offered_and_taken_next(reader: Client, make_task: Make) -> None:
    task = make_task(status="running")
    assert reader.post(f"/tasks/{task.id}/do/pause/", {"reason": "look"}).status_code == 302
    offered = text_of(reader.get(f"/tasks/{task.id}/")).split("not-now")[0]
    assert "/do/resume/" in offered and "/do/pause/" not in offered
    bulk = text_of(reader.get(f"/tasks/bulk/?command=pause&ids={task.id}"))
    assert "is running, with pause still to be carried out; pause is not accepted when it is paused" in bulk
    assert reader.post(f"/tasks/{task.id}/do/resume/", {"reason": "looked"}).status_code == 302
    assert list(Command.objects.order_by("id").values_list("name", flat=True)) == ["pause", "resume"]


def test_who_has_no_right_is_forbidden_an_act(reader: Client, make_task: Make) -> None:
    bobs, own = make_task(user="bob", status="paused"), make_task()
    steers = "needs the right to steer"
    for task, act, why in (
        (bobs, "kill", "belongs to bob"),
        (bobs, "pause", "belongs to bob"),
        (own, "reassign", steers),
    ):
        answer = reader.post(f"/tasks/{task.id}/do/{act}/", {"reason": "x", "site": "SITE_B"})
        assert answer.status_code == 403 and why in text_of(answer)
    assert not Command.objects.exists()


def test_an_act_needs_the_token_of_its_form_and_a_name(ada: Any, make_task: Make) -> None:
    strict, task = Client(enforce_csrf_checks=True), make_task()
    strict.force_login(ada)
    assert strict.post(f"/tasks/{task.id}/do/pause/", {"reason": "x"}).status_code == 403
    assert strict.get(f"/tasks/{task.id}/do/explode/").status_code == 404
    assert not Command.objects.exists()


def test_acts_that_are_not_legal_are_greyed_with_the_reason(reader: Client, make_task: Make) -> None:
    for changes, act, why in (
        ({"status": "paused"}, "pause", "not accepted in this state; in this state it accepts resume,"),
        ({"user": "bob"}, "kill", "belongs to bob"),
        ({}, "reassign", "right to steer"),
    ):
        task = make_task(**changes)
        text = text_of(reader.get(f"/tasks/{task.id}/"))
        off = text[text.index("not-now") :]
        assert f"/tasks/{task.id}/do/{act}/" in off and why in off
        assert "Not now" in text_of(reader.get(f"/tasks/{task.id}/do/{act}/"))
    assert "/do/resume/" in text_of(reader.get(f"/tasks/{make_task(status='paused').id}/")).split("not-now")[0]


def test_what_cannot_be_done_now_is_counted_and_folded(reader: Client, make_task: Make) -> None:
    foreign, ended = make_task(user="bob"), make_task(status="done")
    for task in (foreign, ended):
        page = reader.get(f"/tasks/{task.id}/")
        buttons, text = page.context["buttons"], text_of(page)
        assert len(buttons.possible) + buttons.refused_count == len(ACTS)
        assert f"Not now ({buttons.refused_count})" in text
        folded = text[text.index("d-not-now") :].partition("d-not-now-all")
        assert folded[0].count('aria-disabled="true"') <= sum(len(acts) for _, acts in buttons.refused[:3])
        assert text.count('aria-disabled="true"') == buttons.refused_count
        assert (f"Show all {buttons.refused_count}" in text) == (len(buttons.refused) > 3)
    assert text_of(reader.get(f"/tasks/{foreign.id}/")).count("belongs to bob; you may not command it") == 1
    assert f"Show all {buttons.refused_count}" in text


def test_operators_change_a_task_in_place(operator: Client, make_task: Make, make_job: Make) -> None:
    task = make_task(split_rule="", current_priority=1)
    Queue.objects.bulk_create(Queue(name=name, site_name=name) for name in ("SITE_A", "SITE_B"))
    TaskParams.objects.create(task=task, params={"taskName": "x", "includedSite": ["SITE_A", "SITE_B"]})
    queued = make_job(task_id=task.id, status="activated")
    for name, form in (
        ("priority", {"priority": "900"}),
        ("avoid_site", {"site": "SITE_A"}),
        ("needs", {"ramCount": "3000"}),
        ("split_rule", {"changes": '{"nFilesPerJob": 3}'}),
    ):
        answer = operator.post(f"/tasks/{task.id}/do/{name}/", {"reason": "try", **form})
        assert answer.status_code == 302, text_of(answer)
    task.refresh_from_db()
    queued.refresh_from_db()
    assert (task.current_priority, queued.current_priority, task.ram_count) == (900, 900, 3000)
    assert "NF=3" in task.split_rule and "LS=3" in task.split_rule
    params = TaskParams.objects.get(pk=task.id).params
    assert (params["excludedSite"], params["includedSite"]) == (["SITE_A"], ["SITE_B"])
    assert AuditEntry.objects.count() == TaskStatusLog.objects.filter(task_id=task.id).count() == 4
    answer = operator.post(f"/tasks/{task.id}/do/avoid_site/", {"reason": "try", "site": "SITE_B"})
    assert answer.status_code == 409 and "is bound to SITE_B" in text_of(answer)


@pytest.mark.parametrize(
    ("act", "values", "said"),
    [
        ("needs", {"cpuTime": "NaN"}, "CPU time"),
        ("needs", {"cpuTime": "-nan"}, "CPU time"),
        ("needs", {"coreCount": "1_000"}, "Cores"),
        ("needs", {"coreCount": "\u0663"}, "Cores"),
        ("split_rule", {"changes": '{"\\ud800": 1}'}, "half a surrogate pair"),
        ("split_rule", {"changes": '{"nFilesPerJob": 2, "nFilesPerJob": 3}'}, "occurs twice"),
        ("split_rule", {"changes": '{"nFilesPerJob": NaN}'}, "not a JSON number"),
    ],
)
def test_values_that_are_no_numbers_or_no_plain_json_are_refused_by_name(
    operator: Client, make_task: Make, act: str, values: dict[str, str], said: str
) -> None:
    task = make_task(split_rule="", core_count=1)
    answer = operator.post(f"/tasks/{task.id}/do/{act}/", {"reason": "r", **values})
    assert answer.status_code == 409 and said in text_of(answer), text_of(answer)
    task.refresh_from_db()
    assert (task.split_rule, task.core_count) == ("", 1)


def test_the_form_of_needs_says_that_empty_fields_change_nothing(operator: Client, make_task: Make) -> None:
    text = text_of(operator.get(f"/tasks/{make_task().id}/do/needs/"))
    assert "empty fields stay as they are" in text and "The old values can be set again." in text


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        (None, "In kB per MB of input. Now: 3."),
        ("MB", "In MB per MB of input. Now: 3."),
        ("MBFixed", "In MB per MB of input. Now: 3."),
        ("kBPerEvent", "In kB an event. Now: 3."),
    ],
)
def test_the_form_of_needs_says_of_what_the_output_is_and_how_advice_calls_it(
    operator: Client, make_task: Make, unit: str | None, says: str
) -> None:
    task = make_task(out_disk_count=3, out_disk_unit=unit, work_disk_count=5, work_disk_unit="GB")
    text = " ".join(re.sub("<[^>]*>", " ", text_of(operator.get(f"/tasks/{task.id}/do/needs/"))).split())
    assert f"Output outDiskCount {says}" in text and "Scratch space workDiskCount In GB per job. Now: 5." in text, text


def test_the_form_of_needs_shows_what_the_task_has_and_its_type_follows(operator: Client, make_task: Make) -> None:
    task = make_task(
        ram_count=900_000, core_count=1, resource_type="SCORE_HIMEM", ram_unit="MBPerCore", io_intensity=None
    )
    url = f"/tasks/{task.id}/do/needs/"
    text = text_of(operator.get(url))
    assert "In MB a core. Now: 900000." in text and "In kB per second. Now: nothing is set." in text, text
    assert "In HS06 s an event." in text and "0: any number. Now: 1." in text
    for form, kind in (
        ({"ramCount": "2000"}, "SCORE"),
        ({"coreCount": "8"}, "MCORE"),
        ({"ramCount": "4000"}, "MCORE_HIMEM"),
    ):
        assert operator.post(url, {"reason": "try", **form}).status_code == 302
        task.refresh_from_db()
        assert task.resource_type == kind
    log = TaskStatusLog.objects.filter(task_id=task.id).order_by("id").first()
    assert log is not None and log.reason == "change attributes: ramCount 2000 (before: 900000) (try)"
    parameter_changes.change_in_place(task_with_params(task), {"ramCount": 1000}, by="ada")
    task.refresh_from_db()
    assert task.resource_type == "MCORE"


def task_with_params(task: Task) -> int:
    TaskParams.objects.create(task=task, params=smallest())
    return task.id


def test_a_retry_that_would_find_nothing_to_do_is_not_offered(
    reader: Client, make_task: Make, make_dataset: Make
) -> None:
    task = make_task(status="running", prod_source_label="user")
    made = make_dataset(task, type="input", files=4, files_failed=0)
    says = f"Task {task.id} has no file that has used up its attempts"
    page = reader.get(f"/tasks/{task.id}/do/retry/")
    assert page.context["refused"] and says in text_of(page)
    made.files_failed = 1
    made.save()
    page = reader.get(f"/tasks/{task.id}/do/retry/")
    assert says not in text_of(page) and not page.context["refused"]


def test_refusals_on_pages_call_acts_as_their_buttons_do(reader: Client, make_task: Make) -> None:
    """In place of the names that the API has: on the page of a task, in its answer, and on the page for many."""
    task = make_task(status="paused")
    takes = ", ".join(rule.title.lower() for rule in COMMANDS.values() if task.status in rule.accepted)
    assert "more attempts" in takes and "avalanche" not in takes
    for name, says in (
        ("retry", f"in this state it accepts {takes}"),
        ("avalanche", "is paused; skip scouts is accepted in: "),
        ("priority", "Change priority needs the right to steer"),
    ):
        pages = [
            reader.get(f"/tasks/{task.id}/do/{name}/"),
            reader.post(f"/tasks/{task.id}/do/{name}/", {"reason": "x"}),
        ]
        pages.append(reader.post("/tasks/bulk/", {"command": name, "ids": [task.id]}))
        for page in pages:
            text = text_of(page)
            assert says in text and not re.search(r"increase_attempts|incexec[^/]*</|>priority needs", text), (
                name,
                text,
            )
    form = {"command": "avalanche", "ids": [task.id], "reason": "x", "confirm": "1"}
    text = text_of(reader.post("/tasks/bulk/", form, follow=True))
    assert f"was refused by 1 task ({task.id}): is paused; skip scouts is accepted" in text


def test_many_tasks_are_previewed_and_exactly_those_get_it(
    reader: Client, make_task: Make, make_job: Make, django_assert_max_num_queries: Any, settings: Any
) -> None:
    mine = [make_task() for _ in range(5)]
    done, bobs = make_task(status="done"), make_task(user="bob")
    for number, task in enumerate(mine):
        make_job(task_id=task.id, status="activated", site=f"SITE_{number % 2}")
    ids = [task.id for task in (*mine, done, bobs)]
    with django_assert_max_num_queries(MOST_QUERIES):
        answer = reader.post("/tasks/bulk/", {"command": "pause", "ids": [*ids, 7]})
    text, plan = text_of(answer), answer.context["plan"]
    assert plan.ids == ids[:5] and (plan.hit.jobs, plan.hit.sites, plan.refused_tasks) == (5, 2, 3)
    assert "belongs to bob" in text and "is done; it has ended; nothing to pause" in text and "is not there" in text
    assert not Command.objects.exists()
    # One is ended and another one made in the meantime.
    Task.objects.filter(pk=ids[0]).update(status="aborted")
    make_task()
    form = {"command": "pause", "ids": answer.context["ids"], "reason": "stop", "confirm": "1", "query": "user=ada"}
    answer = reader.post("/tasks/bulk/", form, follow=True)
    assert answer.redirect_chain[0][0] == "/tasks/?user=ada"
    assert "Pause: sent to 4 tasks" in text_of(answer) and f"refused by 1 task ({ids[0]}): is aborted" in text_of(
        answer
    )
    assert sorted(Command.objects.values_list("task_id", flat=True)) == ids[1:5]
    act, refusals = AuditEntry.objects.filter(object_type="tasks").order_by("id")
    assert (act.action, act.reason, act.object_id) == ("bulk pause", "stop", "asked of 5 tasks")
    assert act.details["ids"] == ids[:5]
    assert (refusals.action, refusals.object_id) == ("bulk pause", "refused by 1 task")
    (words,) = refusals.details.keys() - {"bulk"}
    assert words.startswith("is aborted") and refusals.details == {"bulk": act.pk, words: ids[:1]}
    each = AuditEntry.objects.filter(object_type="task", action="pause")
    assert {(e.object_id, e.reason, e.details["bulk"]) for e in each} == {(str(i), "stop", act.pk) for i in ids[1:5]}


def test_tasks_are_chosen_by_the_filters_of_the_list_and_not_too_many(
    operator: Client, make_task: Make, settings: Any
) -> None:
    ids = [make_task(name=f"x{n}", current_priority=1).id for n in range(3)]
    other = make_task(name="y", current_priority=1)
    answer = operator.get("/tasks/bulk/", {"query": "?name=x&before=&sort=-name", "ids": [other.id]})
    assert "3 tasks?" in text_of(answer) and answer.context["ids"] == ",".join(map(str, ids))
    answer = operator.post("/tasks/bulk/", {"command": "priority", "query": "name=x"})
    assert answer.context["plan"].ids == ids
    form = {"command": "priority", "ids": answer.context["ids"], "query": "name=x", "confirm": "1", "reason": "urgent"}
    assert operator.post("/tasks/bulk/", form).status_code == 400  # no priority is given
    assert operator.post("/tasks/bulk/", {**form, "priority": "5"}).status_code == 302
    assert set(Task.objects.filter(pk__in=ids).values_list("current_priority", flat=True)) == {5}
    other.refresh_from_db()
    assert other.current_priority == 1
    form = {"command": "share", "ids": str(other.id), "confirm": "1", "reason": "x", "share": "x" * 33}
    answer = operator.post("/tasks/bulk/", form)
    assert answer.status_code == 400 and "Share: At most 32" in text_of(answer)
    settings.JEDI_BULK_LIMIT = 2
    for given, fault in (
        ({"query": "name=x"}, "2 is the limit"),
        ({"ids": "1,2,3"}, "2 is the limit"),
        ({"query": "colour=red"}, "no filter"),
        ({"query": "sort=name"}, "give a filter"),
        ({"query": "status=odd"}, "status:"),
        ({"ids": "1,x"}, "not the number"),
        ({}, "No task is chosen"),
        ({"query": ""}, "give a filter"),
        ({"query": "name=nothing"}, "No task matches"),
    ):
        answer = operator.post("/tasks/bulk/", {"command": "pause", **given})
        assert answer.status_code == 400 and fault in text_of(answer), given


def test_changes_of_the_amount_of_work_are_checked_for_many_tasks_at_once(
    operator: Client, api: Callable[..., Client], make_task: Make
) -> None:
    """With as many statements for five tasks as for one; the page and the API refuse what is too much."""

    def refused(number: int) -> tuple[int, int]:
        tasks = [make_task(status="done", user="grace") for _ in range(number)]
        TaskParams.objects.bulk_create(TaskParams(task=task, params=smallest()) for task in tasks)
        ids, too_many = [task.id for task in tasks], {"nEvents": 4_000_000}
        form = {"command": "incexec", "ids": ids, "confirm": "1", "reason": "x", "changes": json.dumps(too_many)}
        with sent() as by_page:
            answer = operator.post("/tasks/bulk/", form)
        assert answer.status_code == 400 and "give a larger nEventsPerJob" in text_of(answer)
        body = {"command": "incexec", "ids": ids, "reason": "x", "changes": too_many}
        with sent() as by_api:
            found = client.post("/api/v2/tasks/bulk-commands/", body, content_type="application/json")
        assert found.status_code == 422 and found.json()["errors"][0]["field"] == "changes.nEvents"
        return len(by_page), len(by_api)

    client = api("production")
    refused(1)  # what the frame keeps for a minute is there
    assert refused(5) == refused(1)


def test_a_thousand_tasks_take_few_statements(
    reader: Client, make_task: Make, django_assert_max_num_queries: Any
) -> None:
    Task.objects.bulk_create(
        Task(id=30_000_000 + n, name=f"t{n}", status="running", user="ada", task_type="anal") for n in range(1000)
    )
    answer = reader.post("/tasks/bulk/", {"command": "finish", "query": "user=ada"})
    with django_assert_max_num_queries(120):
        form = {"command": "finish", "ids": answer.context["ids"], "confirm": "1", "reason": "over"}
        assert reader.post("/tasks/bulk/", form).status_code == 302
    assert Command.objects.filter(name="finish").count() == 1000


def test_the_api_previews_and_gives_a_command_to_many(api: Make, make_task: Make, make_job: Make) -> None:
    client, url = api(), "/api/v2/tasks/bulk-commands/"
    ids = [make_task().id for _ in range(3)]
    bobs = make_task(user="bob").id
    make_job(task_id=ids[0], status="activated")
    body = {"command": "finish", "soft": True, "reason": "enough", "filter": {"status": "running"}}
    answer = client.post(url, body, content_type="application/json")
    found = answer.json()
    assert answer.status_code == 200 and found["preview"] is True and not Command.objects.exists()
    assert (found["ids"], found["jobs"], found["sites"], found["owners"]) == (ids, 1, 1, {"ada": 3})
    assert found["refused"] == [{"kind": "right", "words": "belongs to bob; you may not command it", "ids": [bobs]}]
    body = {"command": "finish", "soft": True, "reason": "enough", "ids": [*ids, bobs, 7], "preview": False}
    answer = client.post(url, body, content_type="application/json")
    assert answer.status_code == 202 and answer.json()["ids"] == ids
    assert [group["kind"] for group in answer.json()["refused"]] == ["missing", "right"]
    assert set(Command.objects.values_list("task_id", "comment")) == {(i, "enough") for i in ids}
    assert Command.objects.first().parameters == {"soft": True}  # type: ignore[union-attr]
    for wrong, field in (
        ({"ids": [1], "filter": {}}, "ids"),
        ({}, "ids"),
        ({"filter": {}}, "filter"),
        ({"filter": {"colour": "x"}}, "filter.colour"),
        ({"ids": [1], "attempts": 3}, "attempts"),
        ({"ids": [0]}, "ids.0"),
        ({"filter": {"status": "odd"}}, "filter.status"),
        ({"ids": [1], "reason": ""}, "reason"),
    ):
        answer = client.post(url, {"command": "pause", "reason": "x", **wrong}, content_type="application/json")
        assert answer.status_code == 422 and answer.json()["errors"][0]["field"] == field, (wrong, answer.json())


def test_jobs_are_killed_one_or_many_for_a_reason(reader: Client, busy_task: Task, make_job: Make) -> None:
    bobs = make_job(user="bob", status="activated")
    answer = reader.post("/jobs/bulk/", {"command": "kill", "query": f"task={busy_task.id}", "ids": []})
    plan = answer.context["plan"]
    assert (len(plan.at_once), len(plan.at_next_call), plan.sites) == (6, 6, 3)
    assert sum(map(len, plan.refused.values())) == 18
    form = {"command": "kill", "ids": f"{answer.context['ids']},{bobs.id}", "reason": "stuck", "confirm": "1"}
    assert reader.post("/jobs/bulk/", {**form, "reason": ""}).status_code == 400
    text = text_of(reader.post("/jobs/bulk/", form, follow=True))
    assert "12 jobs killed" in text and "1 job not killed" in text
    killed = Job.objects.filter(pk=plan.at_once[0]).get()
    assert killed.status == "cancelled" and killed.task_buffer_error_diag.endswith("(ada): stuck")
    assert Job.objects.filter(command_to_pilot="tobekilled").count() == 6
    assert AuditEntry.objects.filter(object_type="job", action="kill", reason="stuck").count() == 12
    entry = AuditEntry.objects.get(object_type="jobs")
    assert (entry.object_id, entry.details["ids"]) == ("12 of 13 jobs", sorted([*plan.ids, bobs.id]))
    one = make_job(status="running", task_id=busy_task.id)
    for act in ("debug", "no-debug", "kill"):
        assert f"/jobs/{one.id}/do/{act}/" in text_of(reader.get(f"/jobs/{one.id}/")) or act == "kill"
        assert "Confirm" in text_of(reader.get(f"/jobs/{one.id}/do/{act}/"))
        assert reader.post(f"/jobs/{one.id}/do/{act}/", {"reason": "look"}).status_code == 302
    assert set(AuditEntry.objects.filter(object_id=str(one.id)).values_list("action", flat=True)) == {
        "debug",
        "no-debug",
        "kill",
    }
    answer = reader.post(f"/jobs/{bobs.id}/do/kill/", {"reason": "x"})
    assert answer.status_code == 403 and "belongs to bob" in text_of(answer)
    for given, fault in (
        ({"command": "retry", "ids": "1"}, "The only command for many jobs is kill"),
        ({}, "No job is chosen"),
        ({"query": "x=1"}, "no filter"),
        ({"query": "task=1"}, "No job matches"),
    ):
        assert fault in text_of(reader.post("/jobs/bulk/", given))


def test_every_act_has_a_page(operator: Client, make_task: Make) -> None:
    task = make_task(status="ready")
    for name in ACTS:
        answer = operator.get(f"/tasks/{task.id}/do/{name}/")
        assert answer.status_code == 200 and ACTS[name].title in text_of(answer)


def test_forms_and_the_trail_say_parameters_in_plain_words(operator: Client, make_task: Make) -> None:
    for act in ACTS.values():
        fields = [field_of(key) for key in act.keys]
        titles = [field.title for field in fields]
        assert len(set(titles)) == len(titles) and not {key.name for key in act.keys} & set(titles), act.name
        assert all(words != value for field in fields for value, words in field.choices)
    task = make_task(status="finished")
    Dataset.objects.create(task=task, name="d", type="input", files=2, files_failed=1)
    form = text_of(operator.get(f"/tasks/{task.id}/do/retry/"))
    assert "Leave child tasks alone" in form and "transcend:" not in form
    given = {"reason": "again", "sole": "on", "transcend": "on"}
    assert operator.post(f"/tasks/{task.id}/do/incexec/", given | {"changes": "[]"}).status_code == 409
    refused = operator.post(f"/tasks/{task.id}/do/incexec/", given | {"changes": "[]"}).context["faults"]
    assert refused[0].startswith("Parameters to change: ")
    assert operator.post(f"/tasks/{task.id}/do/retry/", given).status_code == 302
    for page in ("/audit/?view=all", f"/tasks/{task.id}/audit/"):
        text = text_of(operator.get(page))
        assert "Retry" in text and "Leave child tasks alone: yes, Ignore the limits on retries: yes" in text


@pytest.mark.parametrize(
    ("counters", "said"),
    [
        (
            {"files": 9, "files_used": 6, "files_finished": 1, "files_failed": 2, "files_missing": 1},
            "6 input files can be removed: 3 wait, 2 have failed, 1 is lost or missing. 3 are in jobs and stay.",
        ),
        ({"files": 4, "files_used": 4}, "No input file can be removed at the moment: all 4 left are in jobs."),
        (
            {"files": 4, "files_used": 4, "files_finished": 3},
            "No input file can be removed at the moment: the only one that is left is in a job.",
        ),
        ({"files": 4, "files_used": 4, "files_finished": 4}, "No input file can be removed: all were processed."),
        ({}, "No input file is known yet."),
    ],
)
def test_the_dialog_that_removes_files_counts_those_that_may_be_removed(
    reader: Client, make_task: Make, counters: dict[str, int], said: str
) -> None:
    task = make_task()
    Dataset.objects.create(task=task, name="user.ada.in", type="input", **counters)
    text = text_of(reader.get(f"/tasks/{task.id}/do/remove_files/"))
    assert said in text
    assert "as on the tab Files" in text and "left as they are" not in text and "more attempt" not in text
