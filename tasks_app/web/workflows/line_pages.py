"""The story of a line of a workflow, and the list of its packages."""

from __future__ import annotations

from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.columns import Row
from tasks_app.api.v2.workflow_resources import WorkflowPackageViewSet
from tasks_app.models import WorkflowPackage
from tasks_app.params.faults import ParamErrors
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.workflows.large_workflows import in_its_place
from tasks_app.web.workflows.workflow_buttons import ON_PACKAGES, buttons_of
from tasks_app.web.workflows.workflow_pages import REFRESH_S, line_address, workflow_of
from tasks_app.workflows.line_stories import story_of
from tasks_app.workflows.package_columns import PACKAGES, with_places
from tasks_app.workflows.package_facts import package_facts
from tasks_app.workflows.submitting_workflows import definition_of

COLUMN = PACKAGES.by_name


def _path(row: Row, now: datetime) -> SafeString:
    return cells.link(f"{line_address(row['workflow_id'], row['line'])}#p-{row['path'][-3:]}", row["path"])


PACKAGE_LISTING = Listing(
    page="dashboard:workflow-packages",
    api="api-v2:workflow-packages",
    section="workflows",
    title="Packages",
    one="package",
    many="packages",
    view=WorkflowPackageViewSet,
    facets=(FacetOf("stage", "Stage", "stage"), FacetOf("software", "Software", "software")),
    cells={
        "path": Cell(_path, ("workflow_id", "line")),
        "job_id": cells.to("dashboard:job", COLUMN["job_id"]),
        "task_id": cells.to("dashboard:task", COLUMN["task_id"]),
    },
    template="tasks_app/workflow_packages.html",
    refresh_s=REFRESH_S,
    bulk="dashboard:workflow-packages-bulk",
    actions=ON_PACKAGES,
    nothing_yet="This workflow has no packages.",
    has_views=False,
)


@needs(Right.READ)
@require_safe
def workflow_packages(request: HttpRequest, workflow_id: int) -> HttpResponse:
    """The packages of a workflow, in order, with what they do now."""
    workflow = workflow_of(workflow_id)
    return list_page.show(
        request,
        PACKAGE_LISTING,
        with_places(WorkflowPackage.objects.filter(workflow_id=workflow_id)),
        fixed={"workflow": str(workflow_id)},
        api_args=(workflow_id,),
        workflow=workflow,
        tab="workflow-packages",
    )


@needs(Right.READ)
@require_safe
@takes()
@in_its_place
def workflow_line(request: HttpRequest, workflow_id: int, line: str) -> HttpResponse:
    """A line from what it reads to what it leaves: its packages in order, the jobs that tried them, and where it goes on."""
    workflow, caller = workflow_of(workflow_id), caller_of(request)
    try:
        _, graph = definition_of(workflow)
    except ParamErrors as errors:
        raise Http404(f"The definition of workflow {workflow_id} is refused today: {errors}") from errors
    nodes = [node for node in graph.nodes if node.line_path == line]
    if not nodes:
        raise Http404(f"Workflow {workflow_id} has no line {line[:20]}.")
    facts = package_facts(workflow)
    story = story_of(workflow, graph, facts, nodes)
    own = {node.index for node in nodes}
    before = dict.fromkeys(
        p.line_path for n in nodes for at in graph.parents[n.index] if (p := graph.nodes[at]).index not in own
    )
    after = dict.fromkeys(
        c.line_path for n in nodes for at in graph.children[n.index] if (c := graph.nodes[at]).index not in own
    )
    buttons = buttons_of(workflow, caller, line=line, packages=[facts[at] for at in own])
    context = {
        "section": "workflows",
        "tab": "",
        "workflow": workflow,
        "line": line,
        "story": story,
        "before": [(path, line_address(workflow_id, path)) for path in list(before)[:MOST_LINES]],
        "more_before": max(len(before) - MOST_LINES, 0),
        "after": [(path, line_address(workflow_id, path)) for path in list(after)[:MOST_LINES]],
        "more_after": max(len(after) - MOST_LINES, 0),
        "may_fetch": caller.may_fetch(workflow.owner),
        "buttons": buttons,
        "packages_url": f"{reverse('dashboard:workflow-packages', args=[workflow_id])}?line={line}",
        "seconds": REFRESH_S,
        "now": timezone.now(),
    }
    return render(request, "tasks_app/workflow_line.html", context)


MOST_LINES = 40
"""Lines before and after this one that are named."""
