"""What people on shift come for, in a real browser, each within a budget of clicks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from tasks_app.failures.booking import book_ends
from tasks_app.models import ErrorFingerprint, Handover, Job, JobEndDue, Task, TaskStatusLog
from tests.browser.conftest import NARROW
from tests.browser.test_every_page import AXE, faults_of

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Walk:
    """A page on which clicks are counted; a number or text typed with its Enter is one of them."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1

    def search(self, text: str) -> None:
        self.page.keyboard.press("/")
        self.page.keyboard.type(text)
        self.page.keyboard.press("Enter")
        self.clicks += 1


@pytest.fixture
def full_disk(make_task: Callable[..., Task], make_job: Callable[..., Job], sites: None) -> list[Job]:
    """Jobs that failed in one way on one node of SITE_A two days ago."""
    then, task = timezone.now() - timedelta(days=2), make_task(name="user.ada.copy")
    jobs = [
        make_job(
            task_id=task.id,
            status="failed",
            site="SITE_A",
            worker_node=f"slot{n}@wn-17.lab.example",
            pilot_error_code=1099,
            pilot_error_diag=f"Failed to stage in file {n}: no space left on device",
            state_change_time=then,
            start_time=then - timedelta(hours=1),
        )
        for n in range(3)
    ]
    JobEndDue.objects.bulk_create(JobEndDue(id=job.id) for job in jobs)
    book_ends(1000)
    return jobs


def test_jobs_by_the_words_of_an_error_in_two_clicks(open_page: Any, full_disk: list[Job], tmp_path: Path) -> None:
    walk = Walk(open_page("/"))
    walk.search("no space left on device")
    walk.page.screenshot(path=tmp_path / "results.png", full_page=True)
    walk.click(walk.page.get_by_role("link", name="3 failed jobs"))
    for job in full_disk:
        walk.page.get_by_role("link", name=str(job.id)).first.wait_for()
    assert walk.clicks == 2


def test_the_whole_message_of_a_job_opens_its_error_and_its_jobs_in_two_clicks(
    open_page: Any, full_disk: list[Job], tmp_path: Path
) -> None:
    walk = Walk(open_page("/tasks/"))
    walk.search("Failed to stage in file 2: no space left on device")
    walk.page.wait_for_url(f"**/errors/{ErrorFingerprint.objects.get().id}/**")
    walk.page.screenshot(path=tmp_path / "error.png", full_page=True)
    assert "wn-17.lab.example" in walk.page.locator("main").inner_text()
    walk.click(walk.page.locator("main a[href*='/errors/jobs/']").first)
    walk.page.get_by_role("link", name=str(full_disk[0].id)).first.wait_for()
    assert walk.clicks == 2


def test_suggestions_are_chosen_by_keys(open_page: Any, full_disk: list[Job], tmp_path: Path) -> None:
    page: Page = open_page("/")
    page.evaluate(AXE)
    page.keyboard.press("/")
    page.keyboard.type("wn-17")
    page.locator("#suggestions [role=option]").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert page.locator("#search").get_attribute("aria-activedescendant") == "suggestion-1"
    page.screenshot(path=tmp_path / "suggestions.png")
    faults = faults_of(page, "suggestions, wide and light", [], [])
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.emulate_media(color_scheme="dark")
    page.screenshot(path=tmp_path / "suggestions-narrow.png")
    assert faults + faults_of(page, "suggestions, narrow and dark", [], []) == []
    page.keyboard.press("Escape")
    assert page.locator("#suggestions").is_hidden()
    page.keyboard.press("Backspace")
    page.locator("#suggestions [role=option]").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sites/SITE_A/nodes/")


def test_a_hand_over_is_drafted_on_one_page(
    open_page: Any, full_disk: list[Job], make_task: Any, tmp_path: Path
) -> None:
    """One click to the page, one to hand over; the next shifter needs one to acknowledge."""
    task = make_task(status="exhausted")
    why = "only 1 of 40 jobs succeeded"
    TaskStatusLog.objects.create(task_id=task.id, old_status="running", status="exhausted", by="adder", reason=why)
    Handover.objects.create(
        by="ada", since=timezone.now() - timedelta(hours=16), until=timezone.now() - timedelta(hours=8), summary="quiet"
    )
    walk = Walk(open_page("/"))
    walk.click(walk.page.get_by_role("link", name="Shift", exact=True))
    draft = walk.page.get_by_label("Summary", exact=True)
    assert f"Task {task.id} of ada exhausted: {why}" in draft.input_value()
    draft.press("Control+Home")
    walk.page.keyboard.type("Please watch SITE_A.\n\n")
    walk.click(walk.page.get_by_role("button", name="Hand over"))
    walk.page.get_by_text("Shift handed over.").wait_for()
    assert walk.clicks == 2
    handed = Handover.objects.latest("id")
    assert handed.by == "grace" and handed.summary.startswith("Please watch SITE_A.\n\nShift from")
    walk.click(walk.page.get_by_role("button", name="Acknowledge"))
    walk.page.get_by_text("Hand-over acknowledged.").wait_for()
    assert Handover.objects.earliest("id").acknowledged_by == "grace"
    walk.page.screenshot(path=tmp_path / "shift.png", full_page=True)
    walk.page.emulate_media(media="print")
    assert walk.page.get_by_role("button", name="Hand over").is_hidden()
    walk.page.screenshot(path=tmp_path / "print.png", full_page=True)
