"""Lists at 1440 by 900: 25 rows on a screen, one line each, and the columns that decide are all on it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from brokerage_app.models import Queue, VerdictRecord
from tasks_app.failures.booking import book_ends
from tasks_app.models import CatalogueDataset, Dataset, Job, JobEndDue, Task

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = 25
"""Fewer for data: six tiles stand above that list."""
ON_SCREEN = """() => {
    const rows = [...document.querySelectorAll("table.rows tbody tr")].map(row => row.getBoundingClientRect());
    const scroll = document.querySelector("table.rows").closest(".scroll").getBoundingClientRect();
    const heads = [...document.querySelectorAll("table.rows thead th")].map(
        head => [head.innerText.trim(), head.getBoundingClientRect().right]);
    return {
        rows: rows.filter(row => row.bottom <= innerHeight).length,
        first: rows.length ? rows[0].top : 0,
        height: Math.max(...rows.map(row => row.height)),
        off: heads.filter(([, right]) => right > scroll.right + 1).map(([title]) => title),
    };
}"""


@pytest.fixture
def full_lists(make_task: Callable[..., Task], make_job: Callable[..., Job]) -> None:
    """More rows of each kind than fit a screen, with long names and long reasons."""
    now = timezone.now()
    for n in range(30):
        Queue.objects.create(name=f"LAB_LONG_NAME_OF_SITE_{n:02}-PROD", site_name=f"LAB{n}")
        task = make_task(
            name=f"mc23_13p6TeV.{600000 + n}.PhPy8EG_A14_ttbar_hdamp258p75_SingleLep.merge.e8514_s4162_r14622_p{n}",
            status="running" if n % 2 else "pending",
            user="Ada Augusta Lovelace",
            gshare="MC Simulation full",
        )
        skipped = [["LAB_LONG_NAME", "low_memory", "needs 4000 MB, the site gives 2000 MB"]]
        VerdictRecord.objects.create(
            task_id=task.id,
            chosen=[],
            skipped=skipped,
            sentence="All 148 queues were skipped: 60 too few cores, 40 low memory.",
        )
        Dataset.objects.create(
            task=task,
            name=f"data.{n}.{'x' * 60}",
            type="input",
            status="ready",
            files=1000,
            files_to_be_used=1000,
            files_finished=7,
        )
        job = make_job(
            task_id=task.id,
            status="failed",
            site=f"LAB_LONG_NAME_OF_SITE_{n:02}-PROD",
            worker_node=f"slot1@wn-{n}.long.name.of.lab.example",
            pilot_error_code=1099,
            pilot_error_diag=f"Failed to stage in file {n}: the storage element answered with more words than a cell has",
            state_change_time=now,
            start_time=now - timedelta(hours=1),
            end_time=now,
            core_count=8,
        )
        JobEndDue.objects.create(id=job.id)
        CatalogueDataset.objects.create(name=f"user.ada.{'measurements_' * 6}{n}", scope="user.ada", owner="ada")
    book_ends(1000)


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("/tasks/?view=all", ROWS),
        ("/jobs/?view=all", ROWS),
        ("/sites/?view=all", ROWS),
        ("/errors/jobs/", ROWS),
        ("/data/", 22),
    ],
)
def test_a_screen_holds_25_rows_and_all_usual_columns(
    open_page: Any, full_lists: None, path: str, least: int, tmp_path: Path
) -> None:
    page: Page = open_page(path)
    page.screenshot(path=tmp_path / "list.png")
    found = page.evaluate(ON_SCREEN)
    assert found["off"] == [] and found["rows"] >= least, found
