"""Lists: page, API and export say the same; the address is the state; views are kept."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse
from django.utils import timezone

from brokerage_app.models import PilotCalls, Queue, VerdictRecord
from jedisite.web import exports
from tasks_app.api.v2.base import Lists
from tasks_app.models import Dataset, Job, SavedView, Task
from tasks_app.web.lists import facets
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.tasks.task_listing import LISTING
from tests.tasks_app.api.v2.test_lists import rows as rows_of_all_lists  # noqa: F401


class Table(HTMLParser):
    """The values of a list's table: heads by their titles, and rows of the raw values of cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "tr" and "data-row" in given:
            self.rows.append([])
        if "data-value" in given:
            self.rows[-1].append(given["data-value"] or "")


@pytest.fixture
def some_tasks(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> list[Task]:
    """Tasks of all kinds, one of them with input, jobs and a refusal of the broker."""
    tasks = [
        make_task(
            status=("running", "pending", "done")[n % 3],
            user=("ada", "bob")[n % 2],
            current_priority=n % 4 * 100 or None,
            gshare=("Analysis", "Production")[n % 2],
            task_type="anal",
            name=f"=task.{n}" if n else 'Ünïcode, "quoted"',
        )
        for n in range(12)
    ]
    Dataset.objects.create(
        task=tasks[1],
        name="in",
        type="input",
        status="ready",
        files=10,
        files_to_be_used=10,
        files_used=6,
        files_finished=3,
    )
    for status in ("running", "activated", "failed", "finished"):
        make_job(task_id=tasks[0].id, status=status, site="SITE_A")
    VerdictRecord.objects.create(
        task_id=tasks[1].id, chosen=[], skipped=[], code="memory", sentence="No site has enough memory."
    )
    return tasks


def of_csv(client: Client, url: str) -> list[list[str]]:
    answer: Any = client.get(url)
    assert answer.status_code == 200, answer.content
    return list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode(), newline="")))


@pytest.mark.parametrize(
    "query",
    [
        "view=all",
        "status=running,pending&ordering=-current_priority",
        "user=ada&ordering=user",
        "columns=id,name,progress,reason,blocked_by,failure_percent,sites,work_queue,last_progress&ordering=creation_date",
        "reason=memory",
        "campaign=nobody",
        "stalled_for=5",
        "has_scouts=false&window=1h&share=Analysis&name=task",
    ],
)
def test_the_page_the_api_and_the_exports_say_the_same(reader: Client, some_tasks: list[Task], query: str) -> None:
    page = reader.get(f"/tasks/?{query}")
    assert page.status_code == 200 and not page.context["faults"]
    shown = Table(page.content.decode()).rows
    links = dict(page.context["export_forms"])
    head, *exported = of_csv(reader, links["CSV"])
    assert exported == shown
    assert head == [head.column.name for head in page.context["heads"]]
    rows = reader.get(links["JSON"]).json()["results"]
    assert [[exports.cell(row[name]) for name in head] for row in rows] == shown
    if "campaign=nobody" not in query and "stalled" not in query:
        assert shown


def test_a_list_counts_what_there_is_and_links_to_it(reader: Client, some_tasks: list[Task]) -> None:
    page = reader.get("/tasks/?view=all")
    text = page.content.decode()
    assert page.context["summary"] == "12 of 12 tasks"
    by_title = {facet["title"]: {value: n for value, n, _, _ in facet["values"]} for facet in page.context["facets"]}
    assert by_title["Status"] == {"running": 4, "pending": 4, "done": 4} and by_title["User"] == {"ada": 6, "bob": 6}
    assert "No site has enough memory." in text and f"/tasks/{some_tasks[1].id}/why/" in text
    assert f"/jobs/?task={some_tasks[0].id}&amp;status=failed" in text
    few = reader.get("/tasks/?status=running&user=ada")
    assert [(chip.title, chip.value) for chip in few.context["chips"]] == [("Status", "running"), ("User", "ada")]
    assert few.context["chips"][0].off_url == "/tasks/?user=ada"
    capped = facets.count(Task.objects.all(), [FacetOf("user", "User", "user")], cap=5)
    assert capped.total == 6 and sum(n for _, n in capped.facets[0].values) == 6


def test_a_list_is_paged_forwards_and_back_in_any_order(reader: Client, make_task: Callable[..., Task]) -> None:
    for number in range(120):
        make_task(current_priority=number % 7)
    for ordering in ("-id", "current_priority", "-state_change_time"):
        seen: list[str] = []
        url = f"/tasks/?user=ada&ordering={ordering}&columns=id"
        for _ in range(3):
            page = reader.get(url)
            seen += [row[0] for row in Table(page.content.decode()).rows]
            url = page.context["next_url"]
        assert url is None and len(set(seen)) == len(seen) == 120
        assert [row[0] for row in Table(reader.get(page.context["previous_url"]).content.decode()).rows] == seen[50:100]


def test_faults_of_the_address_are_named_and_the_rest_is_shown(reader: Client, some_tasks: list[Task]) -> None:
    page = reader.get("/tasks/?columns=nonsense&ordering=blocked_by&cursor=x")
    assert page.context["faults"][0].startswith("There is no column 'nonsense'; there are: id, name")
    assert len(page.context["faults"]) == 2 and len(Table(page.content.decode()).rows) == 12
    faults = reader.get("/tasks/?columns=nmae&ordering=-modification_tme").context["faults"]
    assert [fault.rpartition(". ")[2] for fault in faults] == ["Did you mean name?", "Did you mean -modification_time?"]
    page = reader.get("/tasks/?status=nonsense")
    assert "status" in page.context["faults"][0] and not Table(page.content.decode()).rows


@pytest.mark.parametrize(
    "page", ["/tasks/", "/jobs/", "/sites/", "/workers/", "/data/", "/errors/", "/errors/pivot/", "/errors/jobs/"]
)
def test_a_misspelt_filter_is_said_and_not_taken_for_none(reader: Client, some_tasks: list[Task], page: str) -> None:
    answer = reader.get(page, {"siet": "x", "share": "Express", "window": "24h", "cursor": ""}, follow=True)
    text = answer.content.decode()
    assert re.search("siet: There is no such (filter|parameter) here", text)
    assert "share: There" not in text and "window: There" not in text
    found = reader.get(page, {"share": "Express", "window": "24h", "ordering": "nonsense"}, follow=True)
    assert "There is no such" not in found.content.decode()


def test_a_misspelt_filter_lists_nothing_and_can_be_taken_away(reader: Client, some_tasks: list[Task]) -> None:
    page = reader.get("/tasks/?statsu=x&user=ada")
    assert page.context["faults"] == ["statsu: There is no such filter here. Did you mean status?"]
    assert not Table(page.content.decode()).rows and "statsu" in page.context["matching"]
    assert "Nothing is listed because this filter does not exist" in page.content.decode()
    assert page.context["summary"] == "", "nothing was counted"
    assert {chip.title: chip.off_url for chip in page.context["chips"]}["statsu"] == "/tasks/?user=ada"
    (chip,) = reader.get("/tasks/?self=x").context["chips"]
    assert (chip.title, chip.off_url) == ("self", "/tasks/?view=all")
    assert "Did you mean state?" not in reader.get("/attention/?state=gone&before=5").content.decode()
    assert (
        "kidn: There is no such parameter here. Did you mean kind?" in reader.get("/attention/?kidn=x").content.decode()
    )


def test_a_view_with_a_column_that_is_gone_keeps_the_others(reader: Client, some_tasks: list[Task]) -> None:
    SavedView.objects.create(owner="ada", page="tasks", name="Old", query="columns=id,max_attempt,user", is_usual=True)
    page = reader.get("/tasks/", follow=True)
    assert page.context["faults"] == ["There is no column 'max_attempt'; the others are shown."]
    assert [head.column.name for head in page.context["heads"]] == ["id", "user"]
    assert page.context["query"] == "columns=id,user", "saved again, it is whole"


def test_forms_lead_to_one_address_for_what_they_say(reader: Client, some_tasks: list[Task]) -> None:
    said = reader.get("/tasks/?status=&user=ada&column=id&column=name&ordering=-id")
    assert said["Location"] == "/tasks/?user=ada&ordering=-id&columns=id,name"
    assert reader.get("/tasks/?status=&user=")["Location"] == "/tasks/?view=all"


def test_views_are_saved_seen_first_shared_and_deleted(reader: Client, some_tasks: list[Task]) -> None:
    form = {"page": "tasks", "name": "Mine", "query": "user=ada&columns=id,name", "is_usual": "on"}
    assert reader.post("/views/save/", form)["Location"] == "/tasks/?user=ada&columns=id,name"
    assert reader.get("/tasks/")["Location"] == "/tasks/?user=ada&columns=id,name"
    page = reader.get("/tasks/?user=ada&columns=id,name")
    assert [(view.name, on) for view, _, on in page.context["views"]] == [("Mine", True)]
    reader.post("/views/save/", {**form, "name": "Other", "query": "status=done"})
    assert list(SavedView.objects.filter(is_usual=True).values_list("name", flat=True)) == ["Other"]
    other = Client()
    other.force_login(User.objects.create_user("bob"))
    view = SavedView.objects.get(name="Mine")
    assert other.post(f"/views/{view.id}/", {"act": "delete"}).status_code == 404
    assert not other.get("/tasks/?view=all").context["views"]
    reader.post(f"/views/{view.id}/", {"act": "shared"})
    assert "Mine" in other.get("/tasks/?view=all").content.decode() and "Mine" in other.get("/views/").content.decode()
    reader.post(f"/views/{view.id}/", {"act": "delete"})
    assert list(SavedView.objects.values_list("name", flat=True)) == ["Other"]
    for bad in ({"page": "x"}, {"name": ""}, {"name": "x" * 65}, {"query": "x" * 2001}):
        reader.post("/views/save/", {**form, **bad})
    assert SavedView.objects.count() == 1


def lists_with_columns() -> Iterator[type[Any]]:
    for entry in next(p for p in get_resolver().url_patterns if "tasks_app.api.v2.urls" in str(p)).url_patterns:
        view = getattr(entry.callback, "cls", None)
        if view and issubclass(view, Lists) and view.columns is not None:
            yield view


@pytest.mark.django_db
def test_every_column_that_a_list_names_can_be_read_and_ordered_by() -> None:
    views = list(lists_with_columns())
    assert views
    for view in views:
        columns = view.columns
        everything = list(columns.by_name.values())
        assert columns.rows(list(view.queryset.values(*columns.needed(everything))[:1]), everything) is not None
        names = {column.path for column in everything}
        orderings = {*getattr(view, "orderings", ()), *getattr(view, "small_orderings", ())}
        assert orderings <= names, (view, orderings - names)
    unknown = set(LISTING.cells) - set(LISTING.columns.by_name)
    assert not unknown


def test_the_query_of_an_export_says_what_the_page_shows(reader: Client, some_tasks: list[Task]) -> None:
    links = dict(reader.get("/tasks/?user=ada&ordering=-id&density=compact").context["export_forms"])
    said = dict(parse_qsl(urlsplit(links["CSV"]).query))
    assert said.pop("columns").startswith("id,name,status") and said == {
        "user": "ada",
        "ordering": "-id",
        "format": "csv",
    }


def listings() -> dict[str, Listing]:
    """Every list page that stands on its own, by the name of its address."""
    reverse("dashboard:tasks")  # imports all pages
    modules = [module for name, module in sys.modules.items() if name.startswith("tasks_app.web")]
    found = {value.page: value for module in modules for value in vars(module).values() if isinstance(value, Listing)}
    return {page: listing for page, listing in sorted(found.items()) if not get_arguments(page)}


def get_arguments(page: str) -> bool:
    """Whether an address has parts that have to be filled in."""
    try:
        reverse(page)
    except NoReverseMatch:
        return True
    return False


def rounded(head: list[str], row: list[str], grows: set[str]) -> list[Any]:
    """A row, of what grows from one request to the next (for how long a job has waited or run) only whether it is there."""
    return [bool(value) if name in grows else value for name, value in zip(head, row, strict=True)]


@pytest.mark.usefixtures("rows_of_all_lists", "busy_task")
def test_every_list_says_the_same_as_its_exports(operator: Client) -> None:
    compared, grows = {}, {"walltime_s", "queued_s", "efficiency_percent"}
    for page, listing in listings().items():
        for columns in ("", ",".join(listing.columns.by_name)):
            answer = operator.get(reverse(page), {"columns": columns} if columns else {"view": "all"})
            assert answer.status_code == 200 and not answer.context["faults"], (page, answer.context["faults"])
            shown = Table(answer.content.decode()).rows
            links = dict(answer.context["export_forms"])
            head, *exported = of_csv(operator, links["CSV"])
            sent = operator.get(links["JSON"]).json()["results"]
            for others in (exported[: len(shown)], [[exports.cell(row[name]) for name in head] for row in sent]):
                assert [rounded(head, row, grows) for row in others] == [rounded(head, row, grows) for row in shown], (
                    page
                )
            compared[page] = len(shown)
    assert len(compared) >= 6 and min(compared.values()) > 0, compared


def test_a_task_all_of_whose_jobs_wait_where_no_pilot_asks_is_blocked_by_that(
    reader: Client, make_task: Callable[..., Task], make_job: Callable[..., Any]
) -> None:
    """In the words of its why; one that has a job at a pilot, or waits where pilots ask, is not blocked."""
    now = timezone.now()
    nowhere, paused = make_task(status="running"), make_task(status="paused")
    for task, site in ((nowhere, None), (nowhere, "SILENT"), (paused, "SILENT")):
        make_job(task_id=task.id, status="activated", site=site)
    for name, status in (("SILENT", "online"), ("SHUT", "offline"), ("ALIVE", "online")):
        Queue.objects.create(name=name, site_name=name, status=status)
    PilotCalls.objects.create(site="ALIVE", hour=now, get_job=1, last_get_job=now)
    silent, shut, alive, mixed, runs = tasks = [make_task(status="running") for _ in range(5)]
    for task, sites in zip(tasks, ("SILENT", "SHUT", "ALIVE", "SILENT ALIVE", "SILENT"), strict=True):
        for site in sites.split():
            make_job(task_id=task.id, status="activated", site=site)
    make_job(task_id=runs.id, status="running", site="SILENT")
    rows = reader.get("/api/v2/tasks/?columns=id,blocked_by").json()["results"]
    found = {row["id"]: row["blocked_by"] for row in rows}
    why = {task.id: reader.get(f"/api/v2/tasks/{task.id}/why/").json()["gates"] for task in (silent, shut)}
    gates = {number: {gate["name"]: gate for gate in told} for number, told in why.items()}
    assert found[silent.id] == gates[silent.id]["pilots"]["sentence"]
    assert found[paused.id] == "" and found[nowhere.id], "its state says more; a job without a queue is left out"
    assert found[shut.id] == gates[shut.id]["queues"]["sentence"]
    assert "no pilot has asked for jobs at SILENT" in found[silent.id] and "the queue is offline" in found[shut.id]
    assert [found[task.id] for task in (alive, mixed, runs)] == ["", "", ""]
