"""The list of workflows, one workflow as a graph and a table, and its graph as a DAGMan file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.web.columns import Row
from tasks_app.api.v2.workflow_resources import WorkflowViewSet
from tasks_app.domain import words
from tasks_app.domain.progress import Progress
from tasks_app.models import Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.templatetags import dashboard as tags
from tasks_app.web.lists import cells, list_page
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf
from tasks_app.web.lists.listing import Listing
from tasks_app.web.lists.misspelt import takes
from tasks_app.web.workflows import graph_picture
from tasks_app.web.workflows.large_workflows import in_its_place
from tasks_app.web.workflows.seen_workflow import SeenWorkflow, seen
from tasks_app.web.workflows.workflow_buttons import buttons_of
from tasks_app.workflows.rules.dagman_file import dag_of, written
from tasks_app.workflows.rules.graph_folding import Box, fold
from tasks_app.workflows.rules.implied_graph import Node
from tasks_app.workflows.rules.package_states import PackageStatus
from tasks_app.workflows.submitting_workflows import definition_of
from tasks_app.workflows.workflow_columns import WORKFLOWS
from tasks_app.workflows.workflow_states import with_states

REFRESH_S = 15
COLUMN = WORKFLOWS.by_name


def _progress(row: Row, now: datetime) -> str | SafeString:
    total = (row["packages"] or 0) - (row["canceled"] or 0)
    if total <= 0:
        return cells.DASH
    done = Progress(total, row["successful"], row["failed"], row["at_work"], unit="package")
    text = f"{done.percent} % of {words.plural(total, 'package')}"
    return format_html('<span class="bar-text">{}</span>{}', text, tags.bar_of(done))


def _packages_of(name: str, **filters: str) -> Cell:
    """A number as a link to those packages of the workflow."""

    def render(row: Row, now: datetime) -> str | SafeString:
        if not row[name]:
            return "0"
        url = f"{reverse('dashboard:workflow-packages', args=[row['id']])}?{urlencode(filters, safe=',')}"
        return cells.link(url, words.count(row[name]))

    return Cell(render, ("id",))


LISTING = Listing(
    page="dashboard:workflows",
    api="api-v2:workflows",
    section="workflows",
    title="Workflows",
    one="workflow",
    many="workflows",
    view=WorkflowViewSet,
    facets=(FacetOf("state", "State", "state"), FacetOf("owner", "Owner", "owner")),
    cells={
        "id": cells.to("dashboard:workflow", COLUMN["id"]),
        "name": cells.to("dashboard:workflow", COLUMN["name"], "id"),
        "owner": cells.filtered("dashboard:workflows", "owner", COLUMN["owner"]),
        "progress": Cell(_progress, ("packages", "successful", "failed", "at_work", "canceled")),
        "failed": _packages_of("failed", status="failed"),
        "at_work": _packages_of("at_work", status="scheduled,launched"),
        "canceled": _packages_of("canceled", status="canceled"),
        "successful": _packages_of("successful", status="successful"),
        "packages": _packages_of("packages", view="all"),
    },
    template="tasks_app/workflows.html",
    refresh_s=REFRESH_S,
    nothing_yet="No workflow has been submitted yet.",
)


@needs(Right.READ)
@require_safe
def workflow_list(request: HttpRequest) -> HttpResponse:
    """Workflows, newest first unless the address says another order."""
    return list_page.show(request, LISTING)


def workflow_of(workflow_id: int) -> Workflow:
    """The workflow with its state. Raises Http404."""
    return get_object_or_404(with_states(Workflow.objects.all()), pk=workflow_id)


@needs(Right.READ)
@require_safe
@takes()
@in_its_place
def workflow_page(request: HttpRequest, workflow_id: int) -> HttpResponse:
    """One workflow: what it does and waits for, its graph with the longest chain that is left, and the same as a table."""
    workflow, now = workflow_of(workflow_id), timezone.now()
    context = {"section": "workflows", "tab": "workflow", "workflow": workflow, "seconds": REFRESH_S, "now": now}
    try:
        found = seen(workflow, now)
    except ParamErrors as errors:
        context["faults"] = [f"{error.field}: {error.message}" for error in errors.errors[:20]]
        return render(request, "tasks_app/workflow_page.html", context)
    by = Counter(found.states)
    total = len(found.facts)
    context |= {
        "found": found,
        "definition": found.definition,
        "expected_end": found.expected_end(now),
        "picture": _picture(found),
        "shape": graph_picture.BOX,
        "progress": Progress(
            total - by[PackageStatus.CANCELED],
            by[PackageStatus.SUCCESSFUL],
            by[PackageStatus.FAILED],
            by[PackageStatus.LAUNCHED] + by[PackageStatus.SCHEDULED],
            unit="package",
        ),
        "counts": [(state.value, number) for state, number in by.most_common()],
        "failures": sum(sum(fact.failures.values()) for fact in found.facts),
        "buttons": buttons_of(workflow, caller_of(request)),
    }
    return render(request, "tasks_app/workflow_page.html", context)


def _picture(found: SeenWorkflow) -> graph_picture.Picture:
    number = found.workflow.pk

    def address(box: Box, nodes: Sequence[Node]) -> str:
        if not box.is_folded:
            return line_address(number, nodes[0].line_path)
        asked: dict[str, str | int] = {"stage": nodes[0].stage}
        if len({node.sequence for node in nodes}) == 1:
            asked["sequence"] = nodes[0].sequence
        if len({node.package.software for node in nodes}) == 1:
            asked["software"] = nodes[0].package.software
        return f"{reverse('dashboard:workflow-packages', args=[number])}?{urlencode(asked)}"

    return graph_picture.picture_of(
        found.graph,
        fold(found.graph, found.states, found.ends.forecast.chain),
        address,
        usual_s=found.ends.usual_s,
        failures=[sum(fact.failures.values()) for fact in found.facts],
    )


def line_address(workflow_id: int, line: str) -> str:
    return reverse("dashboard:workflow-line", args=[workflow_id, line])


def dagman_download(name: str, text: str) -> HttpResponse:
    """A DAGMan file to keep. The name of a workflow is made of letters, digits, dots and the like."""
    answer = HttpResponse(text, content_type="text/plain; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{name}.dag"'
    return answer


@needs(Right.READ)
@require_safe
@takes()
@in_its_place
def workflow_dagman(request: HttpRequest, workflow_id: int) -> HttpResponse:
    """The graph of a workflow for HTCondor's DAGMan."""
    workflow = workflow_of(workflow_id)
    try:
        definition, graph = definition_of(workflow)
    except ParamErrors as errors:
        return HttpResponse(str(errors), content_type="text/plain; charset=utf-8", status=409)
    return dagman_download(definition.name, written(dag_of(definition, graph)))
