"""From the list of workflows to the job that failed, in a real browser: why does it stand still?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import NARROW
from tests.tasks_app.web.workflows.some_workflows import in_part

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_from_the_list_to_the_failed_job(open_page: Any, tmp_path: Path) -> None:
    workflow = in_part()
    page: Page = open_page("/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Workflows").click()
    page.screenshot(path=tmp_path / "1-list.png", full_page=True)
    page.get_by_role("link", name="pair").click()
    assert "Package 001/002/001 (A) has failed, twice with “no beam file”" in page.locator("p.statusline").inner_text()
    page.screenshot(path=tmp_path / "2-graph.png", full_page=True)
    page.locator("svg.graph a[aria-label^='001/002/001, A: failed']").click()
    assert page.url.endswith(f"/workflows/{workflow.pk}/lines/001/002/")
    page.screenshot(path=tmp_path / "3-line.png", full_page=True)
    page.locator("#p-001 table").last.get_by_role("link", name="900003").click()
    assert page.locator("h1").inner_text().startswith("Job 900003") or "900003" in page.title()


def test_the_graph_reads_by_keyboard_and_on_a_narrow_screen(open_page: Any, tmp_path: Path) -> None:
    workflow = in_part()
    page: Page = open_page(f"/workflows/{workflow.pk}/", size=NARROW, theme="dark")
    page.screenshot(path=tmp_path / "narrow.png", full_page=True)
    page.locator("svg.graph a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/workflows/{workflow.pk}/lines/001/001/")
    page.screenshot(path=tmp_path / "narrow-line.png", full_page=True)
