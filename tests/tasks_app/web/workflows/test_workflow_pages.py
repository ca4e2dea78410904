"""Pages of workflows: the list, the graph, lines and packages, acts with their previews, and definitions before they run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jedisite.models import AuditEntry
from tasks_app.models import Command, JobFile, Task, Workflow, WorkflowPackage
from tasks_app.workflows.large_definitions import place_for
from tests.tasks_app.web.lists.test_listing import Table
from tests.tasks_app.web.workflows.some_workflows import LARGE, TWO_STAGES, in_part, stored, submit, tried

pytestmark = pytest.mark.django_db
MOST_QUERIES = 16


def text_of(answer: Any) -> str:
    return str(answer.content.decode()).replace("\u202f", " ").replace("<wbr>", "")


def in_words(answer: Any) -> str:
    """The text of a page without its tags."""
    return " ".join(re.sub("<[^>]*>", "", text_of(answer)).split())


def test_the_list_is_empty_and_says_so(reader: Client) -> None:
    text = text_of(reader.get("/workflows/"))
    assert "No workflow has been submitted yet." in text and 'aria-current="page"' in text
    assert 'href="/workflows/check/"' in text


def test_the_list_shows_states_progress_and_failures(reader: Client, django_assert_max_num_queries: Any) -> None:
    runs, held, dropped = submit(), submit(TWO_STAGES.replace("job pair", "job held\nhold")), stored(TWO_STAGES)
    WorkflowPackage.objects.filter(workflow=dropped).update(is_canceled=True)
    tried(runs, "001/001/001", 1, "finished")
    tried(runs, "001/002/001", 2, "failed", spent=True, exe_error_code=65, exe_error_diag="<b>broke</b>")
    reader.get("/workflows/?view=all")
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get("/workflows/?columns=id,state,progress,failed,failures,packages")
    rows = Table(page.content.decode()).rows
    assert rows == [
        [str(dropped.pk), "canceled", "", "0", "0", "3"],
        [str(held.pk), "held", "0", "0", "0", "3"],
        [str(runs.pk), "failed", "33", "1", "1", "3"],
    ]
    assert f'href="/workflows/{runs.pk}/packages/?status=failed">1</a>' in text_of(page)
    only = reader.get("/workflows/?state=held,failed&columns=id")
    assert [row[0] for row in Table(only.content.decode()).rows] == [str(held.pk), str(runs.pk)]
    assert reader.get("/workflows/?owner=nobody").context["faults"]
    for _ in range(30):
        stored(TWO_STAGES)
    with django_assert_max_num_queries(MOST_QUERIES):
        reader.get("/workflows/?view=all")


def test_the_graph_and_its_table_say_the_same(reader: Client, django_assert_max_num_queries: Any) -> None:
    workflow = submit()
    tried(workflow, "001/001/001", 1, "finished")
    tried(workflow, "001/002/001", 2, "failed", spent=True, exe_error_code=65, exe_error_diag="<b>broke</b>")
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(f"/workflows/{workflow.pk}/")
    text = text_of(page)
    assert (
        "1 of 3 packages has succeeded. Package 001/002/001 (A) has failed, once with “&lt;b&gt;broke&lt;/b&gt;”, and "
        "1 package waits for it. Retry it, or drop its line." in text
    )
    assert text.count('<rect class="box"') == 3 and text.count('<path class="arrow') == 2
    assert "002/001/001, B: unscheduled, in the longest chain that is left" in text
    assert text.count('data-label="Longest chain">yes') == 2, "what has failed, and what waits for it"
    assert "once what has failed is retried or dropped" in text
    assert f'href="/workflows/{workflow.pk}/lines/001/002/"' in text
    assert f'href="/workflows/{workflow.pk}/do/retry/"' in text and "do/priority" not in text


def test_one_node_is_a_graph_too(reader: Client) -> None:
    workflow = submit("job one\nstage\nline\nbinary A\nrun a.sh\nout a")
    text = text_of(reader.get(f"/workflows/{workflow.pk}/"))
    assert text.count('<rect class="box"') == 1 and '<path class="arrow' not in text
    assert "Package 001/001/001 waits for a job." in text
    tried(workflow, "001/001/001", 1, "finished")
    Task.objects.update(status="done")
    text = text_of(reader.get(f"/workflows/{workflow.pk}/"))
    assert "Its only package has succeeded." in text and "Expected end" not in text and "/do/" not in text


def test_a_large_workflow_folds_and_costs_no_more_statements(
    reader: Client, django_assert_max_num_queries: Any
) -> None:
    workflow = stored(LARGE)
    with django_assert_max_num_queries(MOST_QUERIES):
        text = text_of(reader.get(f"/workflows/{workflow.pk}/"))
    assert text.count('<rect class="box"') == 2 and text.count('<path class="arrow') == 1
    assert "There are 2 000 packages" in text and "1 000 unscheduled" in text
    found = re.findall(r'href="(/workflows/\d+/packages/\?stage=1[^"]*)"', text)
    with django_assert_max_num_queries(MOST_QUERIES):
        page = reader.get(found[0].replace("&amp;", "&") + "&status=unscheduled")
    assert page.context["counted"].total == 1000
    assert len(text) < 100_000


def test_names_that_users_make_up_are_escaped(reader: Client) -> None:
    workflow = submit()
    definition = workflow.definition
    hostile = "<script>alert(1)</script>"
    definition["stages"][0]["lines"][0]["packages"][0]["binaries"][0]["software"] = hostile
    Workflow.objects.filter(pk=workflow.pk).update(name=hostile, definition=definition)
    page = reader.get(f"/workflows/{workflow.pk}/")
    assert page.status_code == 200 and hostile not in page.content.decode()
    assert "refused by the checks of today" in page.content.decode()
    for path in ("/workflows/", f"/workflows/{workflow.pk}/packages/", f"/workflows/{workflow.pk}/lines/001/001/"):
        assert hostile not in reader.get(path).content.decode()


def test_a_line_tells_its_story(reader: Client, django_assert_max_num_queries: Any) -> None:
    workflow = submit()
    tried(workflow, "001/001/001", 1, "failed", exe_error_code=65, exe_error_diag="<i>first</i>")
    tried(workflow, "001/001/001", 2, "finished", worker_node="wn7")
    name = f"user.ada.pair.{workflow.pk}.1.a"
    JobFile.objects.create(job_id=2, type="output", lfn=name, size=1234, status="finished", file_id=77)
    with django_assert_max_num_queries(MOST_QUERIES + 4):
        text = text_of(reader.get(f"/workflows/{workflow.pk}/lines/001/001/"))
    assert (
        'href="/jobs/1/"' in text and 'href="/jobs/2/"' in text and "&lt;i&gt;first&lt;/i&gt;" in text and "wn7" in text
    )
    assert "It reads no file of another line." in text and f'href="/workflows/{workflow.pk}/lines/002/001/"' in text
    assert "1.2 kB" in text and "/api/v2/files/77/content" in text
    text = text_of(reader.get(f"/workflows/{workflow.pk}/lines/002/001/"))
    assert "Waits for" in text and "not written yet" in text and "No job has been made for it yet." in text
    assert "written</td>" in text
    for line in ("009/009", "x", "001/001/001", "%3Cb%3E"):
        assert reader.get(f"/workflows/{workflow.pk}/lines/{line}/").status_code == 404
    assert reader.get("/workflows/99999/lines/001/001/").status_code == 404


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("view=all", ["001/001/001", "001/002/001", "002/001/001"]),
        ("status=failed", ["001/002/001"]),
        ("status=failed,launched", ["001/001/001", "001/002/001"]),
        ("stage=2", ["002/001/001"]),
        ("line=001/002", ["001/002/001"]),
        ("software=B", ["002/001/001"]),
        ("reason=BROKE", ["001/002/001"]),
        ("site=FARM_1", ["001/001/001"]),
        ("reason=nothing&status=failed", []),
    ],
)
def test_packages_are_filtered(
    reader: Client, query: str, paths: list[str], django_assert_max_num_queries: Any
) -> None:
    workflow = submit()
    tried(workflow, "001/001/001", 1, "running")
    tried(workflow, "001/002/001", 2, "failed", spent=True, exe_error_code=65, exe_error_diag="broke")
    other = submit(TWO_STAGES.replace("job pair", "job other"))
    tried(other, "001/001/001", 3, "running")
    with django_assert_max_num_queries(MOST_QUERIES + 4):
        page = reader.get(f"/workflows/{workflow.pk}/packages/?{query}")
    assert not page.context["faults"]
    assert [row[0] for row in Table(page.content.decode()).rows] == paths
    api = reader.get(f"/api/v2/workflows/{workflow.pk}/packages/?{query.replace('view=all', '')}").json()["results"]
    assert [row["path"] for row in api] == paths


def test_filters_that_cannot_be_read_are_said(reader: Client) -> None:
    number = submit().pk
    for query in ("line=1", "stage=0", "stage=x", "status=odd", "stagee=1", "line=" + "9" * 50):
        page = reader.get(f"/workflows/{number}/packages/?{query}")
        assert page.context["faults"] and not Table(page.content.decode()).rows, query
    assert reader.get("/workflows/99999/packages/").status_code == 404


def test_an_act_is_previewed_asked_for_its_reason_and_done(reader: Client, django_assert_max_num_queries: Any) -> None:
    workflow = submit()
    Task.objects.update(status="running")
    url = f"/workflows/{workflow.pk}/do/hold/"
    with django_assert_max_num_queries(40):
        text = text_of(reader.get(url))
    assert "<h1>Hold pair?</h1>" in text and "<strong>2 tasks</strong> accept it" in text
    assert "<strong>1 task</strong> accepts it" in text_of(reader.get(url + "?stage=2"))
    assert "stage: " in text_of(reader.get(url + "?stage=0"))
    refused = reader.post(url, {"reason": " "})
    assert refused.status_code == 409 and "Please give a reason" in text_of(refused) and not Command.objects.exists()
    answer = reader.post(url, {"reason": "wrong <input>", "stage": "2"}, follow=True)
    assert "Hold: accepted for workflow" in text_of(answer)
    assert Command.objects.count() == 1
    assert AuditEntry.objects.filter(object_type="workflow", action="hold", reason="wrong <input>").exists()
    assert reader.get(f"/workflows/{workflow.pk}/do/explode/").status_code == 404


def test_a_line_is_dropped_after_its_preview(reader: Client) -> None:
    workflow = submit()
    url = f"/workflows/{workflow.pk}/do/drop/?line=001/001"
    text = text_of(reader.get(url))
    assert "<strong>1 package</strong> will be canceled; no job is killed." in text
    assert "<li>002/001/001 without a</li>" in text
    answer = reader.post(url, {"reason": "bad run", "line": "001/001"}, follow=True)
    assert answer.status_code == 200 and "accepted for line 001/001" in text_of(answer)
    assert list(WorkflowPackage.objects.filter(is_canceled=True).values_list("path", flat=True)) == ["001/001/001"]
    again = text_of(reader.get(url))
    assert "Every package of the line 001/001 has ended" in again and 'method="post" class="act"' not in again
    assert reader.post(f"/workflows/{workflow.pk}/do/drop/", {"reason": "x"}).status_code == 409


def test_lines_of_chosen_packages_are_dropped_together(reader: Client) -> None:
    workflow, other = submit(), submit(TWO_STAGES.replace("job pair", "job other"))
    rows = list(WorkflowPackage.objects.filter(workflow=workflow).order_by("pk").values_list("pk", flat=True))
    foreign = WorkflowPackage.objects.filter(workflow=other).values_list("pk", flat=True)[0]
    url = "/workflows/packages/bulk/"
    text = text_of(reader.get(f"{url}?command=drop&ids={rows[0]}&ids={rows[1]}"))
    assert "Drop 2 lines of pair?" in text and "<strong>3 packages</strong> will be canceled" in text
    text = text_of(reader.get(f"{url}?command=drop&query=workflow%3D{workflow.pk}%26software%3DA"))
    assert f'name="ids" value="{rows[0]},{rows[1]}"' in text
    for query in (
        "command=drop",
        "command=explode&ids=1",
        f"command=drop&ids={rows[0]},{foreign}",
        "command=drop&ids=x",
        "command=drop&ids=99999999",
        "command=drop&query=software%3DA",
        f"command=drop&query=workflow%3D{workflow.pk}%26line%3Dx",
        f"command=drop&query=workflow%3D{workflow.pk}%26nonsense%3Dx",
    ):
        assert reader.get(f"{url}?{query}").status_code == 400, query
    data = {"command": "drop", "ids": f"{rows[0]},{rows[1]}", "confirm": "1", "reason": "both bad"}
    answer = reader.post(url, data, follow=True)
    assert "accepted for 2 lines" in text_of(answer)
    assert WorkflowPackage.objects.filter(workflow=workflow, is_canceled=True).count() == 3


def test_others_look_and_do_nothing(reader: Client, client: Client) -> None:
    workflow = submit()
    client.force_login(User.objects.create_user("eve"))
    assert "/do/" not in text_of(client.get(f"/workflows/{workflow.pk}/"))
    text = text_of(client.get(f"/workflows/{workflow.pk}/do/drop/?line=001/001"))
    assert "belongs to ada" in text and 'method="post" class="act"' not in text
    assert client.post(f"/workflows/{workflow.pk}/do/drop/", {"line": "001/001", "reason": "x"}).status_code == 403
    assert client.post(f"/workflows/{workflow.pk}/do/kill/", {"reason": "x"}).status_code == 403
    assert not Command.objects.exists() and not WorkflowPackage.objects.filter(is_canceled=True).exists()
    client.logout()
    for path in ("", f"{workflow.pk}/", "check/", f"{workflow.pk}/packages/", f"{workflow.pk}/dagman/"):
        assert client.get(f"/workflows/{path}").status_code == 302


def test_a_definition_is_checked_and_shown_and_nothing_runs(reader: Client) -> None:
    assert "Paste a definition" in text_of(reader.get("/workflows/check/"))
    text = text_of(reader.post("/workflows/check/", {"text": TWO_STAGES}))
    assert "pair is a valid definition: 2 stages, 3 lines, 3 packages, 2 dependencies." in text
    assert text.count('<rect class="box"') == 3 and 'value="submit"' in text
    assert not Workflow.objects.exists()
    with place_for(50_001, "ada"):
        answer = reader.post("/workflows/check/", {"text": TWO_STAGES + "\n" + "#" * 50_001})
        assert answer.status_code == 503 and "Another large workflow is being read for you" in text_of(answer)
    dag = reader.post("/workflows/check/", {"text": TWO_STAGES, "act": "dagman"})
    assert dag["Content-Disposition"] == 'attachment; filename="pair.dag"' and dag.content.startswith(
        b"JOB Stage1Line1"
    )
    answer = reader.post("/workflows/check/", {"text": TWO_STAGES, "act": "submit"}, follow=True)
    workflow = Workflow.objects.get()
    assert answer.redirect_chain == [(f"/workflows/{workflow.pk}/", 302)] and workflow.owner == "ada"
    assert reader.get(f"/workflows/{workflow.pk}/dagman/").content == dag.content


def test_a_definition_may_come_as_a_file(reader: Client) -> None:
    file = SimpleUploadedFile("w.txt", TWO_STAGES.encode())
    text = text_of(reader.post("/workflows/check/", {"text": "", "file": file}))
    assert "pair is a valid definition" in text and "run b.sh" in text, "it stands in the field, to be submitted"
    odd = SimpleUploadedFile("w.txt", b"\xff\xfe\x00")
    answer = reader.post("/workflows/check/", {"file": odd})
    assert answer.status_code == 400 and "not a text in UTF-8" in text_of(answer)


def test_every_fault_is_shown_with_its_line(reader: Client) -> None:
    for old, new, code in (
        ("in a c", "in a <script>", "in a &lt;script&gt;"),
        ("in a c", "in a nowhere", "in a nowhere"),
        ("in a c", "walk <b>", "walk &lt;b&gt;"),
    ):
        text = TWO_STAGES.replace(old, new).replace("out c", "out a", 1 if new == "in a nowhere" else 0)
        answer = reader.post("/workflows/check/", {"text": text, "act": "submit"})
        shown = text_of(answer)
        assert answer.status_code == 400 and "line 15" in shown and f"<code>{code}</code>" in shown
        assert ("line 10" in shown) == (new == "in a nowhere"), "a file of two producers is told, too"
        assert "<script>" not in shown.partition("<main")[2] and "<b>" not in shown
    assert not Workflow.objects.exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "{",
        "[" * 100_000,
        '{"name": ' * 50_000,
        "job x\n" * 100_000,
        "x" * 2_000_001,
        "repeat i 1..999999\n" * 3,
    ],
)
def test_hostile_definitions_are_refused(reader: Client, text: str) -> None:
    answer = reader.post("/workflows/check/", {"text": text})
    assert answer.status_code == 400 and 0 < len(answer.context["faults"]) <= 200


def test_a_file_that_is_too_long_is_refused_and_the_token_of_the_form_is_checked(ada: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    assert strict.post("/workflows/check/", {"text": TWO_STAGES}).status_code == 403
    strict.get("/workflows/check/")
    token = strict.cookies["csrftoken"].value
    long = SimpleUploadedFile("w.txt", b"x" * 8_100_000)
    answer = strict.post("/workflows/check/", {"csrfmiddlewaretoken": token, "text": "", "file": long})
    assert answer.status_code == 400 and "too long for this page" in text_of(answer)


def test_what_this_site_cannot_run_is_said_and_cannot_be_submitted(reader: Client) -> None:
    text = text_of(reader.post("/workflows/check/", {"text": TWO_STAGES.replace("binary B", "binary B sam")}))
    assert "This site cannot run it as it is." in text and 'value="submit"' not in text


def test_a_task_says_of_which_workflow_it_is(reader: Client, django_assert_max_num_queries: Any) -> None:
    workflow = submit()
    first, second = Task.objects.order_by("id")
    text = text_of(reader.get(f"/tasks/{first.id}/"))
    assert f'href="/workflows/{workflow.pk}/">pair</a>' in text
    assert f'href="/workflows/{workflow.pk}/packages/?task={first.id}"' in text
    assert "stage 1, 2 packages from 001/001/001 to 001/002/001" in text
    text = text_of(reader.get(f"/tasks/{second.id}/"))
    assert f'href="/workflows/{workflow.pk}/lines/002/001/">stage 2, line 001</a>' in text


def test_a_workflow_is_found_by_its_number_and_name(reader: Client) -> None:
    workflow = submit()
    assert reader.get("/search/?q=pair")["Location"] == f"/workflows/{workflow.pk}/"
    assert f'href="/workflows/{workflow.pk}/"' in text_of(reader.get(f"/search/?q={workflow.pk}", follow=True))


def test_failed_packages_are_retried_and_no_others(reader: Client) -> None:
    workflow = in_part()
    other = tried(workflow, "001/001/001", 900_004, "failed", spent=True)
    rows = dict(WorkflowPackage.objects.filter(workflow=workflow).values_list("path", "pk"))
    url = "/workflows/packages/bulk/"
    text = text_of(reader.get(f"{url}?command=retry&ids={rows['001/002/001']}&ids={rows['002/001/001']}"))
    assert "Retry 2 packages of pair?" in text and "<strong>1 task</strong> accepts it" in text
    none = text_of(reader.get(f"{url}?command=retry&ids={rows['002/001/001']}"))
    assert "None of these packages has failed" in none and 'method="post" class="act"' not in none
    data = {"command": "retry", "ids": str(rows["001/002/001"]), "confirm": "1", "reason": "beam file is there"}
    answer = reader.post(url, data, follow=True)
    assert "Retry: accepted for 1 package" in text_of(answer)
    command = Command.objects.get()
    assert (command.task_id, command.name, command.parameters) == (other.task_id, "increase_attempts", {"subjobs": "1"})
    entry = AuditEntry.objects.get(object_type="workflow", action="retry")
    assert entry.details == {"packages": ["001/002/001"]} and entry.reason == "beam file is there"


def test_the_failed_packages_of_a_line_are_retried(reader: Client) -> None:
    workflow = in_part()
    Task.objects.update(status="finished")
    page = f"/workflows/{workflow.pk}/lines/001/002/"
    assert f'href="/workflows/{workflow.pk}/do/retry/?line=001/002"' in text_of(reader.get(page))
    url = f"/workflows/{workflow.pk}/do/retry/?line=001/002"
    assert "Retry line 001/002 of pair?" in text_of(reader.get(url))
    answer = reader.post(url, {"reason": "again", "line": "001/002"}, follow=True)
    assert "accepted for line 001/002" in text_of(answer), re.findall(
        "<span>[^<]*</span>|<p>[^<]*</p>", text_of(answer)
    )
    command = Command.objects.get()
    assert (command.name, command.parameters) == ("retry", {"subjobs": "1"})
    refused = text_of(reader.get(f"/workflows/{workflow.pk}/do/kill/?line=001/002"))
    assert "Kill is for a whole workflow or a stage of it" in refused


def test_a_line_is_held_and_resumed_with_its_buttons(reader: Client) -> None:
    workflow = in_part()
    page, do = f"/workflows/{workflow.pk}/lines/002/001/", f"/workflows/{workflow.pk}/do"
    assert f'href="{do}/hold/?line=002/001"' in text_of(reader.get(page))
    assert "1 package will be on hold; no job is taken back." in in_words(reader.get(f"{do}/hold/?line=002/001"))
    reader.post(f"{do}/hold/", {"reason": "wait for me", "line": "002/001"}, follow=True)
    assert WorkflowPackage.objects.get(workflow=workflow, is_held=True).path == "002/001/001"
    shown = text_of(reader.get(page))
    assert "002/001/001 B held" in in_words(reader.get(page)) and f'href="{do}/resume/?line=002/001"' in shown
    assert f'href="{do}/hold/?line=002/001"' not in shown
    assert "1 package is on hold: resume it." in text_of(reader.get(f"/workflows/{workflow.pk}/"))
    assert "002/001/001" in text_of(reader.get(f"/workflows/{workflow.pk}/packages/?status=held"))
    assert "1 package will get jobs again" in in_words(reader.get(f"{do}/resume/?line=002/001"))
    assert "1 package will get jobs again" in in_words(reader.get(f"{do}/resume/")), "of the whole workflow as well"
    reader.post(f"{do}/resume/", {"reason": "now", "line": "002/001"})
    assert not WorkflowPackage.objects.filter(is_held=True).exists()


def test_a_failed_workflow_offers_what_it_accepts(reader: Client) -> None:
    workflow = in_part()
    tried(workflow, "002/001/001", 900_004, "failed", spent=True)
    page, do = f"/workflows/{workflow.pk}/", f"/workflows/{workflow.pk}/do"
    shown = text_of(reader.get(page))
    assert f'href="{do}/retry/"' in shown and f'href="{do}/kill/"' in shown, "its tasks are open"
    Task.objects.filter(pk__in=workflow.packages.values("task_id")).update(status="finished")
    shown = text_of(reader.get(page))
    assert f'href="{do}/retry/"' in shown
    for name in ("hold", "kill", "priority"):
        assert f'href="{do}/{name}/"' not in shown, name


def test_a_job_names_its_package(reader: Client) -> None:
    workflow = in_part()
    shown = text_of(reader.get("/jobs/900002/"))
    assert f'<a href="/workflows/{workflow.pk}/lines/001/002/#p-001">001/002/001</a> of workflow' in shown
    assert f'<a href="/workflows/{workflow.pk}/">pair</a>' in shown
    JobFile.objects.filter(job_id=900_002).delete()
    assert "of workflow" not in text_of(reader.get("/jobs/900002/"))


def test_the_list_is_ordered_by_state_progress_and_expected_end(reader: Client) -> None:
    partly = in_part()
    begun, held = (
        submit(TWO_STAGES.replace("job pair", "job begun")),
        stored(TWO_STAGES.replace("job pair", "job held")),
    )
    tried(begun, "001/001/001", 910_001, "finished")
    tried(begun, "001/002/001", 910_002, "finished")
    Task.objects.filter(pk__in=begun.packages.values("task_id")).update(status="running")

    def order(by: str, **more: str) -> list[int]:
        page = reader.get("/workflows/", {"ordering": by, "columns": "id", **more})
        return [int(row[0]) for row in Table(page.content.decode()).rows]

    assert order("progress") == [held.pk, partly.pk, begun.pk] and order("-progress") == [begun.pk, partly.pk, held.pk]
    assert order("state") == [partly.pk, held.pk, begun.pk], "failed, held, running"
    assert order("expected_end")[0] == begun.pk and order("-expected_end")[-1] == begun.pk, "the others have none"
    assert order("progress", page_size="2") == [held.pk, partly.pk]
    first = reader.get("/api/v2/workflows/", {"ordering": "-progress", "page_size": 2}).json()
    assert [one["id"] for one in first["results"]] == [begun.pk, partly.pk]
    second = reader.get(first["next"]).json()
    assert [one["id"] for one in second["results"]] == [held.pk] and second["next"] is None
    assert [one["id"] for one in reader.get(second["previous"]).json()["results"]] == [begun.pk, partly.pk]
    head = text_of(reader.get("/workflows/"))
    assert "ordering=progress" in head and "ordering=state" in head and "ordering=-expected_end" in head
    export = reader.get("/api/v2/workflows/", {"ordering": "-progress", "format": "csv", "columns": "id,progress"})
    assert "".join(map(bytes.decode, export)).split() == [
        "id,progress",
        f"{begun.pk},66",
        f"{partly.pk},33",
        f"{held.pk},0",
    ]  # type: ignore[call-overload]
