"""How the list of jobs is shown, with plots of its newest rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from jedisite.web.columns import Row
from tasks_app.api.v2.job_resources import JobViewSet
from tasks_app.lists.job_columns import JOBS
from tasks_app.params.acts import JOB_ACTS
from tasks_app.web.lists import cells
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing

COLUMN = JOBS.by_name
PAGE = "dashboard:jobs"


def _status(row: Row, now: datetime) -> SafeString:
    chip = cells.status(row["status"], url=f"{reverse(PAGE)}?status={row['status']}")
    return format_html('{} <span class="small muted">{}</span>', chip, row["sub_status"]) if row["sub_status"] else chip


def _error(row: Row, now: datetime) -> str | SafeString:
    if not row["error"]:
        return cells.DASH
    by_error = cells.filtered(PAGE, "error", COLUMN["error"]).render(row, now)
    return format_html(
        '{} <br><span class="small" title="{}">{}</span>', by_error, row["error_detail"], row["error_says"]
    )


def _filtered(**parameters: str) -> dict[str, Cell]:
    return {name: cells.filtered(PAGE, parameter, COLUMN[name]) for name, parameter in parameters.items()}


def _worker(row: Row, now: datetime) -> str | SafeString:
    content = cells.shown("text", row["worker_id"], now)
    return cells.link(f"{reverse('dashboard:workers')}?job={row['id']}", content) if row["worker_id"] else content


LISTING = Listing(
    page=PAGE,
    api="api-v2:jobs",
    section="jobs",
    title="Jobs",
    one="job",
    many="jobs",
    view=JobViewSet,
    facets=(
        FacetOf("status", "Status", "status"),
        FacetOf("site", "Queue", "site"),
        FacetOf("share", "Share", "gshare"),
        FacetOf("user", "User", "user"),
        FacetOf("resource_type", "Resource type", "resource_type"),
        FacetOf("processing", "Processing type", "processing_type"),
    ),
    cells={
        "id": cells.to("dashboard:job", COLUMN["id"]),
        "task_id": cells.to("dashboard:task", COLUMN["task_id"]),
        "status": Cell(_status, ("sub_status",)),
        "error": Cell(_error, ("error_says", "error_detail")),
        "follows": cells.to("dashboard:job", COLUMN["follows"]),
        "followed_by": cells.to("dashboard:job", COLUMN["followed_by"]),
        "worker_id": Cell(_worker, ("id",)),
        "max_walltime_s": cells.limit(COLUMN["max_walltime_s"]),
        **_filtered(
            site="site",
            worker_node="node",
            user="user",
            gshare="share",
            resource_type="resource_type",
            processing_type="processing",
            prod_source_label="label",
            nucleus="nucleus",
            vo="vo",
            working_group="group",
        ),
    },
    template="tasks_app/job_list.html",
    bulk="dashboard:jobs-bulk",
    actions=[(act.name, act.title) for act in JOB_ACTS.values() if act.name == "kill"],
    nothing_yet="No job has been made yet.",
)


def archive_links(given: dict[str, Any], path: str) -> list[tuple[str, str, bool]]:
    """(title, address, whether it is shown) of the living and the archived jobs."""
    is_archive = given.get("archived") == "true"
    return [("Living", path, not is_archive), ("Archive", f"{path}?archived=true", is_archive)]
