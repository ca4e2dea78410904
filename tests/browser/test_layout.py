"""The pages in a real browser: they fit a narrow screen, obey their own security policy, refresh and follow keys.

Pictures of every page are left in the test's folder (`--basetemp` says where).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from jedisite import device_logins, identity
from jedisite.models import Agent
from tasks_app.accounting.failures import book_ends, note_ends
from tasks_app.ddm.local import storage_path
from tasks_app.models import Command, ErrorFingerprint, File, Job, Task, TaskStatusLog
from tests.conftest import FIRST_JOB

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WIDE, NARROW = (1440, 900), (390, 844)


@pytest.fixture
def open_page(browser: Browser, live_server: LiveServer, operator: Client) -> Iterator[Any]:
    """A function that opens an address as the operator; afterwards no page may have complained in the console."""
    contexts, complaints = [], []

    def open_at(path: str, *, size: tuple[int, int] = WIDE, theme: str = "light") -> Page:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=theme)  # type: ignore[arg-type]
        contexts.append(context)
        session = operator.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        answer = page.goto(live_server.url + path)
        assert answer is not None and answer.ok, f"{path} was answered with {answer and answer.status}"
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def addresses(busy_task: Task, failed_job: Job, sites: None, tmp_path: Path, settings: Any) -> dict[str, str]:
    now = timezone.now()
    Agent.objects.all().delete()
    Agent.objects.create(name="refiner", title="Turns parameters into tasks", period_s=5, due_at=now, passes=12345)
    Agent.objects.create(name="feeder", title="Lists the files of inputs", period_s=5, due_at=now - timedelta(hours=2))
    Agent.objects.create(name="adder", title="Books outcomes", period_s=5, due_at=now, last_error="Traceback: x" * 30)
    for number, status in enumerate(("running", "done", "failed", "exhausted", "aborted", "pending", "broken"), 100):
        name = f"user.ada.{status}." + "long_name." * 6
        why = "All 3 sites were skipped: 2 low memory, 1 site offline."
        Task.objects.create(
            id=busy_task.id + number,
            name=name,
            status=status,
            user="ada",
            task_type="anal",
            current_priority=900,
            error_dialog=why,
        )
    reason = "killed by ada: wrong input"
    TaskStatusLog.objects.create(
        task_id=busy_task.id, old_status="running", status="pending", by="commando", reason=reason
    )
    Command.objects.create(
        task_id=busy_task.id, name="pause", owner="ada", comment="wait for calibration", status="done"
    )
    settings.JEDI_STORAGE = tmp_path / "storage"
    settings.JEDI_DEV_ISSUER, settings.JEDI_SERVER_URL = "dev", "http://127.0.0.1:8000"
    histogram = _histogram(busy_task.id, settings.JEDI_STORAGE)
    note_ends(now - timedelta(days=1))
    book_ends(1000)
    begun = device_logins.start()
    assert begun is not None
    return {
        "histograms": f"/tasks/{busy_task.id}/histograms/",
        "histogram": f"/tasks/{busy_task.id}/histograms/{histogram.id}/",
        "overview": "/",
        "tasks": "/tasks/",
        "task": f"/tasks/{busy_task.id}/",
        "task-timeline": f"/tasks/{busy_task.id}/timeline/",
        "job-timeline": f"/jobs/{failed_job.id}/timeline/",
        "kill-task": f"/tasks/{busy_task.id}/do/kill/",
        "reassign-task": f"/tasks/{busy_task.id}/do/reassign/",
        "resume-task": f"/tasks/{busy_task.id}/do/resume/",
        "kill-tasks": f"/tasks/bulk/?command=kill&ids={busy_task.id},{busy_task.id + 101},{busy_task.id + 105},7",
        "act-on-tasks": "/tasks/bulk/?query=user%3Dada",
        "kill-jobs": f"/jobs/bulk/?query=task%3D{busy_task.id}",
        "kill-job": f"/jobs/{FIRST_JOB}/do/kill/",
        "jobs": "/jobs/",
        "job": f"/jobs/{failed_job.id}/",
        "errors": "/errors/",
        "errors-pivot": "/errors/pivot/",
        "failed-jobs": "/errors/jobs/",
        "error": f"/errors/{ErrorFingerprint.objects.earliest('id').id}/",
        "task-errors": f"/tasks/{busy_task.id}/errors/",
        "sites": "/sites/",
        "site": "/sites/SITE_A/",
        "site-nodes": "/sites/SITE_A/nodes/",
        "shares": "/shares/",
        "queues": "/queues/",
        "queue-tester": "/queues/tester/?a-vo=lab",
        "agents": "/agents/",
        "agent": "/agents/adder/",
        "data": "/data/?view=all",
        "users": "/users/",
        "user": "/users/ada/",
        "audit": "/audit/?view=all",
        "timeouts": "/timeouts/",
        "tokens": "/tokens/",
        "device": f"/dev-issuer/verify?user_code={begun[1]}",
        "device-code": "/dev-issuer/verify",
        "empty": "/tasks/?name=nothing-has-this-name",
    }


def _histogram(task_id: int, root: Path) -> File:
    """A file with two histograms in the storage, as a task makes it."""
    edges = [round(60 + 0.75 * i, 2) for i in range(81)]
    counts = [round(900 * math.exp(-(((e - 91) / 3) ** 2)) + 40 * math.exp(-(e - 60) / 20)) for e in edges[:-1]]
    errors = [math.sqrt(count) for count in counts]
    mass = {
        "name": "mass",
        "title": "Mass of the pair",
        "x_label": "GeV",
        "edges": edges,
        "counts": counts,
        "errors": errors,
    }
    few = {"title": "Pairs", "xlabel": "m(mu+ mu-)", "unit": "GeV", "low": 0, "high": 4, "counts": [1, 0, 9, 2]}
    few |= {"underflow": 3, "events_in": 12000, "peak": {"value": 2.5, "error": 0.125}}
    path = storage_path(root, "user.ada", "x.hist.json")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"histograms": [mass, few]}))
    return File.objects.create(
        task_id=task_id, dataset_id=1, lfn="x.hist.json", type="output", status="finished", scope="user.ada", size=1234
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_page_fits_its_window(
    open_page: Any, addresses: dict[str, str], theme: str, size: tuple[int, int], tmp_path: Path
) -> None:
    for name, path in addresses.items():
        page = open_page(path, size=size, theme=theme)
        page.screenshot(path=tmp_path / f"{name}-{theme}-{size[0]}.png", full_page=True)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{name} is {overflow} px wider than its window"
        page.context.close()


def test_a_token_is_made_and_taken_back_on_its_page(open_page: Any, tmp_path: Path) -> None:
    page = open_page("/tokens/", size=NARROW)
    page.get_by_label("What it is for").fill("scripts on the laptop of the counting room")
    page.get_by_label("It may").select_option("read")
    page.get_by_role("button", name="Make the token").click()
    token = page.locator("#token").inner_text()
    assert identity.caller_of_token(token) is not None
    page.screenshot(path=tmp_path / "made.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.get_by_role("button", name="Revoke scripts on the laptop").click()
    page.get_by_text("is of no use any more").wait_for()
    assert identity.caller_of_token(token) is None


def test_a_watched_page_refreshes_itself_and_can_be_paused(
    open_page: Any, addresses: dict[str, str], busy_task: Task
) -> None:
    page = open_page(addresses["task"])
    page.locator("#d-skipped > summary").click()
    Task.objects.filter(pk=busy_task.id).update(name="renamed.meanwhile")
    page.keyboard.press("r")
    page.get_by_role("heading", name="renamed.meanwhile").wait_for()
    assert page.locator("#d-skipped").get_attribute("open") is not None
    assert page.url.endswith(addresses["task"])
    page.keyboard.press("p")
    assert page.locator("[data-pause-button]").inner_text() == "Resume"


def test_keys_search_and_go(open_page: Any, addresses: dict[str, str], busy_task: Task) -> None:
    page = open_page("/")
    page.keyboard.press("/")
    page.keyboard.type(str(busy_task.id))
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{busy_task.id}/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs/")
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()


def test_the_theme_is_kept(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page("/")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("[data-theme-button]").click()
    page.locator("[data-theme-button]").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(background) != light
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(background) != light


def test_a_task_is_commanded_from_its_page(open_page: Any, addresses: dict[str, str], busy_task: Task) -> None:
    page = open_page(addresses["task"])
    page.get_by_role("link", name="Pause …", exact=True).click()
    page.get_by_label("Why").fill("wrong input")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("Pause: noted").wait_for()
    assert Command.objects.filter(task_id=busy_task.id, comment="wrong input").count() == 1


def test_the_first_stop_of_the_tab_key_skips_to_the_content(open_page: Any, addresses: dict[str, str]) -> None:
    page = open_page("/tasks/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
