"""The pages in a real browser: they obey their own security policy, refresh, keep their theme, and follow keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from brokerage_app.models import StorageEndpoint
from jedisite.identity import callers
from tasks_app.failures.booking import book_ends
from tasks_app.models import Command, Job, Task, Worker
from tests.browser.conftest import NARROW, WIDE
from tests.ended_jobs import note_failed
from tests.tasks_app.web.brokerage.test_brokerage import decided  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_token_is_made_and_taken_back_on_its_page(open_page: Any, tmp_path: Path) -> None:
    page = open_page("/tokens/", size=NARROW)
    page.get_by_label("What it is for").fill("scripts on the laptop of the counting room")
    page.get_by_label("It may").select_option("read")
    page.get_by_role("button", name="Make the token").click()
    token = page.locator("#token").inner_text()
    assert callers.caller_of_token(token) is not None
    page.screenshot(path=tmp_path / "made.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.get_by_role("button", name="Revoke scripts on the laptop").click()
    page.get_by_text("has been revoked").wait_for()
    assert callers.caller_of_token(token) is None


def test_a_watched_page_refreshes_itself_and_can_be_paused(open_page: Any, busy_task: Task) -> None:
    page = open_page(f"/tasks/{busy_task.id}/")
    page.locator("#d-skipped > summary").click()
    Task.objects.filter(pk=busy_task.id).update(name="renamed.meanwhile")
    page.keyboard.press("r")
    page.get_by_role("heading", name="renamed.meanwhile").wait_for()
    assert page.locator("#d-skipped").get_attribute("open") is not None
    assert page.url.endswith(f"/tasks/{busy_task.id}/")
    page.keyboard.press("p")
    assert page.locator("[data-pause-button]").inner_text() == "Resume"


def test_keys_search_and_go(open_page: Any, busy_task: Task) -> None:
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


def test_the_theme_is_kept(open_page: Any) -> None:
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


def test_a_task_is_commanded_from_its_page(open_page: Any, busy_task: Task) -> None:
    page = open_page(f"/tasks/{busy_task.id}/")
    page.get_by_role("link", name="Pause …", exact=True).click()
    page.get_by_label("Why").fill("wrong input")
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("Pause: accepted").wait_for()
    assert Command.objects.filter(task_id=busy_task.id, comment="wrong input").count() == 1


def test_the_first_stop_of_the_tab_key_skips_to_the_content(open_page: Any) -> None:
    page = open_page("/tasks/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip-link"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_login_form_stands_in_the_middle(open_page: Any, size: tuple[int, int], tmp_path: Path) -> None:
    page = open_page("/", size=size)
    page.context.clear_cookies()
    page.goto(page.url)
    box = page.locator(".login").bounding_box()
    page.screenshot(path=tmp_path / "login.png")
    assert abs(box["x"] + box["width"] / 2 - size[0] / 2) < 12 and box["width"] > 300


BEYOND = "Math.max(0, ...[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth))"
LISTS = (
    "tasks",
    "jobs",
    "sites",
    "workers",
    "data",
    "audit",
    "errors-jobs",
    "queues",
    "shares",
    "errors",
    "agents",
    "users",
)


def test_what_lists_show_by_themselves_fits_a_screen_of_1280_points(
    open_page: Any, moved: Task, failed_job: Job, sites: None
) -> None:
    """Longest names that are usual, the facets folded; and at 1440 beside the facets."""
    user = "wladyslawa.nowak-lindqvist"
    Task.objects.filter(pk=moved.id).update(name="user.ada." + "data_" * 20, gshare="Group production", user=user)
    Job.objects.filter(task_id=moved.id).update(worker_node="slot1_4@b9p03n1234.cern.example", max_rss_kb=7_812_345)
    Worker.objects.create(
        harvester="CERN_central_B",
        worker_id=10_123_456,
        site="SITE_A",
        status="running",
        message="x y" * 100,
        batch_id="1234567.0#169",
        node="b9p03n1234.cern.example",
        last_update=timezone.now(),
    )
    StorageEndpoint.objects.update(space_free_gb=296_756.928_012)
    note_failed(timezone.now() - timedelta(days=1))
    book_ends(1000)
    page, wide = open_page("/"), []
    server = page.url.rstrip("/")
    for size in ((1280, 800), (1440, 900)):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        for name in LISTS:
            page.goto(server + reverse(f"dashboard:{name}"))
            over = page.evaluate(BEYOND)
            wide += [f"{name} at {size[0]}: {over} px beyond the edge"] * (over > 0)
    assert not wide, wide


CHIPS_BEYOND = """[...document.querySelectorAll('table.stack td .chip')].filter(
    e => e.getBoundingClientRect().right > e.closest('td').getBoundingClientRect().right + 1).map(e => e.innerText)"""


def test_a_chip_of_several_words_stays_in_its_cell_on_a_phone(open_page: Any, decided: tuple[Task, int, int]) -> None:  # noqa: F811
    page = open_page(f"/brokerage/what-if/?task={decided[0].id}&memory=2500&sites=A+C", size=NARROW)
    assert page.get_by_text("other numbers").count() == 2
    assert page.evaluate(CHIPS_BEYOND) == []


TOOLS = """[...document.querySelectorAll('.list-tools > .button, .list-tools .tool > summary')].map(
    e => e.getBoundingClientRect()).filter(r => r.width).map(r => [Math.round(r.left), Math.round(r.top), Math.round(r.width)])"""


def test_the_buttons_above_a_list_stand_in_columns_on_a_phone(open_page: Any, busy_task: Task) -> None:
    for query in ("", "?status=running&user=ada"):
        page = open_page(f"/tasks/{query}", size=NARROW)
        tools = page.evaluate(TOOLS)
        assert len(tools) >= 4 and len({left for left, _, _ in tools}) <= 3, tools
        assert len({width for _, _, width in tools}) == 1 and len({top for _, top, _ in tools}) == 2, tools
