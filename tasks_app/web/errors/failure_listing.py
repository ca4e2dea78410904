"""How the list of failed jobs is shown."""

from __future__ import annotations

from datetime import datetime

from django.urls import reverse
from django.utils.safestring import SafeString

from jedisite.web.columns import Row
from tasks_app.api.v2.error_resources import FailureViewSet
from tasks_app.lists.failure_columns import FAILURES
from tasks_app.web.lists import cells
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing

COLUMN = FAILURES.by_name
PAGE = "dashboard:errors-jobs"


def _text(row: Row, now: datetime) -> SafeString:
    said = cells.shown("sentence", row["text"], now) if row["text"] else "No error was reported"
    return cells.link(reverse("dashboard:error", args=[row["fingerprint_id"]]), said)


LISTING = Listing(
    page=PAGE,
    api="api-v2:failures",
    section="errors",
    title="Failed jobs",
    one="failed job",
    many="failed jobs",
    view=FailureViewSet,
    facets=(
        FacetOf("category", "Category", "fingerprint__category"),
        FacetOf("site", "Site", "site"),
        FacetOf("node", "Worker node", "node"),
        FacetOf("user", "User", "user"),
        FacetOf("share", "Activity", "activity"),
        FacetOf("version", "Pilot", "pilot_version"),
    ),
    cells={
        "id": cells.to("dashboard:job", COLUMN["id"]),
        "text": Cell(_text, ("fingerprint_id",)),
        "error": cells.filtered(PAGE, "error", COLUMN["error"]),
        "category": cells.filtered(PAGE, "category", COLUMN["category"]),
        "fingerprint_id": cells.to("dashboard:error", COLUMN["fingerprint_id"]),
        "task_id": cells.to("dashboard:task-errors", COLUMN["task_id"]),
        "site": cells.filtered(PAGE, "site", COLUMN["site"]),
        "node": cells.filtered(PAGE, "node", COLUMN["node"]),
        "user": cells.filtered(PAGE, "user", COLUMN["user"]),
        "activity": cells.filtered(PAGE, "share", COLUMN["activity"]),
        "pilot_version": cells.filtered(PAGE, "version", COLUMN["pilot_version"]),
    },
    template="tasks_app/error_jobs.html",
    refresh_s=30,
    nothing_yet="No job failed in the last 30 days.",
)
