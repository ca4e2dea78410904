"""Parameters of addresses that there are not, or that cannot be read: every page says so and lists nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, reverse
from django.utils import timezone

from brokerage_app.models import GlobalShare, Queue
from tasks_app.models import Dataset, ErrorFingerprint, Task, Workflow
from tasks_app.web.lists.misspelt import ALWAYS
from tasks_app.web.urls import urlpatterns

NO_PAGE = {"metrics"}


@pytest.fixture
def boss(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_superuser("grace"))
    return client


def addresses(task: Task, dataset: Dataset) -> Iterator[tuple[str, str]]:
    workflow = Workflow.objects.create(name="w", owner="ada", definition={})
    numbers = {"task_id": task.id, "dataset_id": dataset.id, "file_id": 1, "job_id": 1, "workflow_id": workflow.pk}
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern) and pattern.name
        names = pattern.pattern.converters
        given = {name: numbers.get(name, 1 if name.endswith(("_id", "number")) else "x") for name in names}
        yield pattern.name, reverse(f"dashboard:{pattern.name}", kwargs=given)


def said(page: Client, address: str, **given: str) -> str:
    return unescape(page.get(address, given).content.decode())


def test_every_page_says_that_a_misspelt_parameter_does_not_exist(boss: Client, make_task: Callable[..., Task]) -> None:
    task = make_task()
    dataset = Dataset.objects.create(task=task, name="d", type="input")
    silent = []
    for name, address in addresses(task, dataset):
        answer = boss.get(address, {"nonsense": "1", "window": "24h", "share": "", "vo": "atlas"}, follow=True)
        said = re.search("nonsense: There is no such (filter|parameter) here", answer.content.decode())
        if answer.status_code != 405 and said is None:
            silent.append(name)
    assert set(silent) == NO_PAGE


def test_no_page_fails_for_what_its_own_parameters_hold(boss: Client, make_task: Callable[..., Task]) -> None:
    task = make_task()
    dataset = Dataset.objects.create(task=task, name="d", type="input")
    GlobalShare.objects.create(name="x", value=1)
    Queue.objects.create(name="x")
    now = timezone.now()
    ErrorFingerprint.objects.create(id=1, category="disk", first_seen=now, last_seen=now)
    boss.raise_request_exception = False
    views = {pattern.name: pattern.callback for pattern in urlpatterns if isinstance(pattern, URLPattern)}
    tried, failed = set(), []
    for name, address in addresses(task, dataset):
        own = vars(views[name]).get("takes", ())
        asked = [f"{one}={value}" for one in own for value in ("%00", "%ED%A0%80" + "x" * 10_000)]
        if own and boss.get(address).status_code == 200:
            tried.add(name)
            asked.append("&".join(f"{one}=%00" for one in sorted(ALWAYS - set(own))))
            failed += [
                f"{address}?{query[:20]}" for query in asked if boss.get(f"{address}?{query}").status_code >= 500
            ]
    assert not failed
    assert {"errors", "errors-pivot", "error", "brokerage", "users", "queue-tester", "task-why"} <= tried


def test_every_page_says_that_it_cannot_read_a_window(boss: Client, make_task: Callable[..., Task]) -> None:
    make_task(user="ada")
    GlobalShare.objects.create(name="Express", value=1)
    Queue.objects.create(name="CERN")
    for address in (
        "/",
        "/brokerage/",
        "/users/",
        "/users/ada/",
        "/shares/",
        "/shares/Express/",
        "/errors/",
        "/sites/CERN/",
    ):
        text = said(boss, address, window="2fortnights")
        assert text.count("window is one of 1h, 6h") == 1, address


@pytest.mark.parametrize(
    ("address", "given", "sentence"),
    [
        ("/brokerage/", {"knid": "task"}, "knid: There is no such parameter here. Did you mean kind?"),
        ("/", {"request": "1"}, "request: There is no such parameter here."),
        ("/brokerage/", {"kind": "tasks"}, "kind: 'tasks' is not one of the choices: job, "),
        ("/brokerage/", {"kind": "\x00"}, "kind: '\\x00' is not one of the choices"),
        ("/users/", {"odering": "name"}, "odering: There is no such parameter here. Did you mean ordering?"),
        ("/users/", {"ordering": "-name"}, "ordering: '-name' is not one of the choices: name, tasks"),
        ("/agents/", {"only": "errors"}, "only: There is no such parameter here."),
        ("/agents/feeder/", {"only": "eror"}, "only: 'eror' is not one of the choices: errors, items. Did you"),
        ("/agents/feeder/", {"before": "x"}, "before: Enter a whole number."),
        ("/shares/", {"resource": "SCOR"}, "resource: 'SCOR' is not a choice"),
        ("/shares/", {"region": "CERN"}, "region: 'CERN' is not a choice: there are no choices."),
        ("/shares/", {"regoin": "CERN"}, "regoin: There is no such parameter here. Did you mean region?"),
        ("/share-targets/", {"valeu-Express": "3"}, "valeu-Express: There is no such parameter here."),
        ("/errors/", {"order": "wast"}, "order: 'wast' is not one of the choices"),
        ("/attention/", {"state": "opne"}, "state: 'opne' is not one of the choices: open, "),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_listed(
    boss: Client, address: str, given: dict[str, str], sentence: str
) -> None:
    answer = boss.get(address, given)
    text = unescape(answer.content.decode())
    assert answer.status_code == 400 and sentence in text and "<table" not in text
    (name,) = given
    assert [url for _, url in answer.context["without"]] == [address] and f"Remove <em>{name}</em>" in text
    assert "<h1>The address contains an error</h1>" in text and "Remove all parameters" not in text
    assert "Remove all parameters" in boss.get(address, {**given, "nonsense": "1"}).content.decode()
    assert boss.get(address).status_code == 200


def test_a_file_of_sites_is_refused_with_a_misspelt_parameter(boss: Client, make_task: Callable[..., Task]) -> None:
    address = f"/tasks/{make_task().id}/why/"
    assert boss.get(address, {"format": "csv"})["Content-Type"].startswith("text/csv")
    refused = boss.get(address, {"format": "csv", "anwser": "near"})
    assert (
        refused.status_code == 400
        and "anwser: There is no such parameter here. Did you mean answer?" in refused.content.decode()
    )


@pytest.mark.parametrize(
    "address",
    [
        "/brokerage/?kind=merge&share=Express&code=&site=&window=24h",
        "/users/?q=&ordering=name&since=",
        "/queues/?a-vo=atlas",
        "/queues/tester/?task=&a-coreCount=",
        "/share-targets/?value-Express=3",
        "/shares/?resource=&region=",
        "/attention/?state=gone&before=5",
        "/errors/?order=last&site=",
        "/queues/?view=all",
        "/tasks/{}/?unmerged=1",
        "/tasks/{}/why/?answer=near&all=1",
        "/tasks/{}/what-if/?changes=",
        "/tasks/{}/timeline/?from=2026-01-31T08:00&to=",
    ],
)
def test_parameters_that_pages_take_are_no_faults(boss: Client, make_task: Callable[..., Task], address: str) -> None:
    GlobalShare.objects.create(name="Express", value=1)
    assert boss.get(address.format(make_task().id)).status_code == 200
