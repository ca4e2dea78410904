"""Calls on workflows, hyper-parameter searches and event picking, which this site refuses with a sentence that the client prints.

pchain, phpo and pbook send these calls; each answer has the shape of which the caller prints the sentence.
"""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from tasks_app.api.panda.call_params import Id, JsonObject, Params
from tasks_app.api.panda.calls import Ask, PandaView, call
from tasks_app.api.panda.wire import refused

SENTENCE = (
    "this site runs no {what}; submit the steps as a workflow of this site (its page /workflows/check/, "
    "POST /api/v2/workflows/ or manage.py workflow), or as tasks, which may name a parent task"
)
WORKFLOWS = SENTENCE.format(what="workflows of pchain")
NO_EVENTS = "this site does not pick events; submit a task that reads the datasets"


class WorkflowParams(Params):
    params = JsonObject(required=False, allow_null=True)


class WhichParams(Params):
    workflow_id = Id()


@call("workflow/submit_workflow_raw_request", "POST", Right.SUBMIT, WorkflowParams, data=OpenApiTypes.NONE)
def submit_workflow_raw_request(ask: Ask) -> HttpResponse:
    """Workflows of pchain are not accepted. Always refused."""
    return refused(WORKFLOWS)


@call("workflow/get_workflow_details", "GET", Right.READ, WhichParams, data=OpenApiTypes.NONE)
def get_workflow_details(ask: Ask) -> HttpResponse:
    """There are no workflows of pchain. Always refused."""
    return refused(f"there is no workflow {ask.given['workflow_id']}: {WORKFLOWS}")


def _refusal(name: str, sentence: str) -> type[PandaView]:
    """A call of the relays to iDDS: `[false, sentence]`."""

    def refuse(ask: Ask) -> HttpResponse:
        return JsonResponse([False, sentence], safe=False)

    refuse.__doc__ = "Not supported: always false, with a sentence."
    return call(name, "POST", Right.SUBMIT, old=True)(refuse)


put_workflow_request = _refusal("put_workflow_request", WORKFLOWS)
relay_idds_command = _refusal("relay_idds_command", SENTENCE.format(what="iDDS"))
execute_idds_workflow_command = _refusal("execute_idds_workflow_command", WORKFLOWS)


@call("putEventPickingRequest", "POST", Right.SUBMIT, old=True)
def put_event_picking_request(ask: Ask) -> HttpResponse:
    """Not supported: a sentence as plain text, which the client prints."""
    return HttpResponse(NO_EVENTS, content_type="text/plain")
