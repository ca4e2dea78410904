"""A shift in a real browser: something is stuck, the overview says so, the why page says why, an act mends it, and it moves.

Once with the mouse, once with nothing but the keyboard. Agents are called between the steps, as the cluster would.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models import F
from django.test import Client
from django.utils import timezone

from brokerage_app.models import VerdictRecord
from jedisite.models import AuditEntry
from tasks_app.agents import attention
from tasks_app.domain.states import TaskStatus
from tasks_app.models import Job, Task
from tests.flow.driving import add_dataset, add_queue, agents_turn, parameters, reads, settle, submit

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
Ask = Callable[[], bool]


@pytest.fixture
def stuck_task(db: None) -> Task:
    """A task that asks for more memory than any site has, for thirteen hours already."""
    add_queue(max_memory_mb=2000)
    add_queue("SITE_B", max_memory_mb=3000)
    add_dataset("data", files=6)
    submit(parameters("user.ada.stuck", reads("data"), ramCount=8000, nFilesPerJob=2))
    settle()
    task = Task.objects.get()
    assert task.status == TaskStatus.PENDING and not Job.objects.exists()
    long = timedelta(hours=13)
    Task.objects.update(
        frozen_time=timezone.now() - long,
        state_change_time=F("state_change_time") - long,
        modification_time=F("modification_time") - long,
        creation_date=F("creation_date") - long,
    )
    VerdictRecord.objects.update(first_at=timezone.now() - long)
    attention.run()
    attention.run_slow()
    return task


@pytest.fixture
def operator(db: None, client: Client) -> Client:
    """Somebody on shift who may steer tasks."""
    user = User.objects.create_user("grace", password="compiler-of-1952")
    user.groups.add(*(Group.objects.get_or_create(name=name)[0] for name in ("shift", "production")))
    client.force_login(user)
    return client


def it_moves(task: Task) -> None:
    """Agents do what the act asked for."""
    for _ in range(3):
        agents_turn()
    attention.run()
    attention.run_slow()
    assert Job.objects.filter(task_id=task.id, status="activated").count() == 3
    acts = AuditEntry.objects.filter(object_type="task", object_id=str(task.id), actor="grace")
    assert [act.reason for act in acts] == ["measured: 1.2 GB are enough"]


def test_a_shift_with_the_mouse(open_page: Any, stuck_task: Task, tmp_path: Path) -> None:
    page: Page = open_page("/")
    page.screenshot(path=tmp_path / "1-overview.png", full_page=True)
    page.locator(f"table.attention a[href*='/tasks/{stuck_task.id}/']").first.click()
    page.get_by_role("navigation", name="About this task").get_by_role("link", name="Why").click()
    page.screenshot(path=tmp_path / "2-why.png", full_page=True)
    assert (
        page.get_by_text("the site gives 2000 MB").or_(page.get_by_text("the site gives 2 000 MB")).first.is_visible()
    )
    page.get_by_role("navigation", name="About this task").get_by_role("link", name="Task", exact=True).click()
    page.get_by_role("link", name="Change needs").click()
    page.get_by_label("Memory").fill("1200")
    page.get_by_label("Why").fill("measured: 1.2 GB are enough")
    page.screenshot(path=tmp_path / "3-preview.png", full_page=True)
    page.get_by_role("button", name="Change needs").click()
    page.get_by_text("accepted for task").wait_for()
    it_moves(stuck_task)
    page.keyboard.press("r")
    page.locator(".chip", has_text="running").first.wait_for()
    page.screenshot(path=tmp_path / "4-moves.png", full_page=True)
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("heading", name="Overview").wait_for()
    assert page.locator(f"table.attention a[href*='/tasks/{stuck_task.id}/']").count() == 0


def focus_on(page: Page, matches: str, most: int = 150) -> None:
    """Press Tab until what has the focus says it; `matches` is JavaScript about `e`."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(f"(() => {{ const e = document.activeElement; return Boolean({matches}); }})()"):
            return
    raise AssertionError(f"Tab never comes to what is meant: {matches}")


def test_a_shift_with_the_keyboard_only(open_page: Any, stuck_task: Task) -> None:
    page: Page = open_page("/")
    focus_on(page, f"e.closest('table.attention') && e.href && e.href.includes('/tasks/{stuck_task.id}/')")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{stuck_task.id}/**")
    # From the list: go to tasks, the first row, open it.
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator("[data-selection-count]").inner_text() == "1 selected"
    page.keyboard.press("x")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{stuck_task.id}/")
    focus_on(page, "e.textContent.trim() === 'Why' && e.closest('.tabs')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/why/")
    assert (
        page.get_by_text("the site gives 2000 MB").or_(page.get_by_text("the site gives 2 000 MB")).first.is_visible()
    )
    focus_on(page, "e.textContent.trim() === 'Task' && e.closest('.tabs')")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/tasks/{stuck_task.id}/")
    focus_on(page, "e.textContent.includes('Change needs')")
    page.keyboard.press("Enter")
    page.wait_for_url("**/do/needs/")
    focus_on(page, "e.name === 'ramCount'")
    page.keyboard.type("1200")
    focus_on(page, "e.name === 'reason'")
    page.keyboard.type("measured: 1.2 GB are enough")
    page.keyboard.press("Enter")
    page.get_by_text("accepted for task").wait_for()
    it_moves(stuck_task)
    page.keyboard.press("r")
    page.locator(".chip", has_text="running").first.wait_for()


def test_a_refresh_leaves_the_focus_where_it_is(open_page: Any, stuck_task: Task) -> None:
    page: Page = open_page(f"/tasks/{stuck_task.id}/")
    focus_on(page, "e.textContent.includes('Change needs')")
    page.evaluate("document.activeElement.dataset.old = '1'")
    page.keyboard.press("r")
    page.locator("[data-old]").wait_for(state="detached")
    page.locator(":focus", has_text="Change needs").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/do/needs/")


def test_lists_are_worked_with_by_keys(open_page: Any, stuck_task: Task) -> None:
    page: Page = open_page("/tasks/?view=all")
    page.keyboard.press("f")
    assert page.evaluate("document.activeElement.id") == "f-status"
    page.locator("#f-status").select_option("pending")
    page.locator("#f-user").fill("ada")
    page.locator("#f-user").press("Enter")
    page.wait_for_url("**/tasks/?status=pending&user=ada")
    page.keyboard.press("c")
    page.get_by_role("checkbox", name="Nucleus").check()
    page.get_by_role("checkbox", name="Sites").check()
    page.get_by_role("button", name="Show these").click()
    page.get_by_role("columnheader", name="Nucleus").wait_for()
    page.keyboard.press("s")
    page.get_by_role("textbox", name="Name", exact=True).fill("Stuck ones of ada")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Stuck ones of ada").wait_for()
    page.get_by_role("link", name="Priority").click()
    page.locator("th[aria-sort=descending]", has_text="Priority").wait_for()
    page.keyboard.press("Escape")
    page.locator("[data-row] input[name=ids]").first.check()
    page.locator("#bulk-command").select_option("pause")
    page.get_by_role("button", name="Preview…").click()
    page.get_by_label("Why").fill("the disks are moved")
    page.screenshot()
    page.get_by_role("button", name="Pause").click()
    settle()
    stuck_task.refresh_from_db()
    assert stuck_task.status == TaskStatus.PAUSED
