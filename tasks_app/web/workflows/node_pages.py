"""The packages of all workflows that have a job on one node, and what is done to them when it is dead."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.forms import CharField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods

from jedisite.identity.callers import Right, caller_of, needs
from jedisite.vocabulary.words import plural
from tasks_app.web.lists.misspelt import takes
from tasks_app.workflows.node_acts import LONGEST_NODE, NODE_ACTS, act_on_node, packages_on
from tasks_app.workflows.workflow_acts import CannotActError

LONGEST_REASON: Final = 1000


@needs(Right.SUBMIT)
@require_http_methods(["GET", "HEAD", "POST"])
@takes(node=CharField(required=False, max_length=LONGEST_NODE))
def workflow_node(request: HttpRequest) -> HttpResponse:
    """The packages on `node`; with POST they are retried or killed (`command`), with a `reason`."""
    caller, given = caller_of(request), request.POST if request.method == "POST" else request.GET
    node = given.get("node", "").strip()[:LONGEST_NODE]
    faults: list[str] = []
    if request.method == "POST":
        command, reason = given.get("command", ""), given.get("reason", "").strip()
        if command not in NODE_ACTS:
            faults.append("command: choose retry or kill.")
        if not reason or len(reason) > LONGEST_REASON:
            faults.append(f"Why: give a reason of at most {LONGEST_REASON} characters.")
        if not faults:
            try:
                done = [one for one in act_on_node(node, command, caller=caller, reason=reason) if not one.refused]
            except CannotActError as error:
                faults.append(str(error))
            else:
                packages = plural(sum(len(one.packages) for one in done), "package")
                messages.success(request, f"{command.capitalize()}: accepted for {packages} on {node}.")
                return redirect(f"{reverse('dashboard:workflow-node')}?{urlencode({'node': node})}")
    found = packages_on(node, caller) if node else []
    context: dict[str, Any] = {
        "section": "workflows",
        "node": node,
        "found": found,
        "number": sum(len(one.packages) for one in found),
        "may": any(not one.refused for one in found),
        "faults": faults,
        "longest": LONGEST_NODE,
        "longest_reason": LONGEST_REASON,
    }
    return render(request, "tasks_app/workflow_node.html", context, status=409 if faults else 200)
