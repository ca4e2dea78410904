"""Who may do what: every address of the site, called by everybody, against the table of expected rights below."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.response import Response
from rest_framework.views import APIView

from jedisite.identity import callers
from jedisite.identity.callers import Caller, HasRight, Right, Role
from jedisite.models import Agent, ApiToken, ForeignIdentity
from jedisite.vocabulary.roles import Scope
from tasks_app.api.panda.wire import StatusCode
from tasks_app.models import Command, Dataset, Job, Task
from tests.jedisite.little_issuer import LittleIssuer
from tests.thorough import FULL

pytestmark = pytest.mark.django_db

NOTHING, READ, SUBMIT, OPERATE, TOKENS = Right.NOTHING, Right.READ, Right.SUBMIT, Right.OPERATE, Right.TOKENS
PILOT, SITE_DATA, COMMAND_ANY, TELL, STEER = Right.PILOT, Right.SITE_DATA, Right.COMMAND_ANY, Right.TELL, Right.STEER
FETCH_ANY = Right.FETCH_ANY

EXPECTED: dict[str, dict[str, Right]] = {
    "login/": {"GET": NOTHING, "POST": NOTHING},
    "logout/": {"POST": NOTHING},
    "tasks/compare/": {"GET": READ},
    "tasks/<int:task_id>/inputs/": {"GET": READ},
    "tasks/<int:task_id>/outputs/": {"GET": READ},
    "tasks/<int:task_id>/jobs/": {"GET": READ},
    "tasks/<int:task_id>/sites/": {"GET": READ},
    "tasks/<int:task_id>/scouts/": {"GET": READ},
    "tasks/<int:task_id>/flow/": {"GET": READ},
    "tasks/<int:task_id>/events/": {"GET": READ},
    "tasks/<int:task_id>/events/ranges/": {"GET": READ},
    "events/": {"GET": READ},
    "tasks/<int:task_id>/profile/": {"GET": READ},
    "tasks/<int:task_id>/params/": {"GET": READ},
    "tasks/<int:task_id>/audit/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/files/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/outputs.zip": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/events/": {"GET": READ},
    "help/": {"GET": READ},
    "views/": {"GET": READ},
    "views/save/": {"POST": READ},
    "views/<int:view_id>/": {"POST": READ},
    "tokens/": {"GET": TOKENS, "POST": TOKENS},
    "tokens/<int:token_id>/revoke/": {"POST": TOKENS},
    "favicon.ico": {"GET": NOTHING},
    "healthz": {"GET": NOTHING},
    "readyz": {"GET": NOTHING},
    "metrics": {"GET": READ},
    "audit/": {"GET": READ},
    "data/": {"GET": READ},
    "transfers/": {"GET": READ},
    "data/<int:dataset_id>/": {"GET": READ},
    "data/catalogue/<int:number>/": {"GET": READ},
    "users/": {"GET": READ},
    "users/<path:name>/": {"GET": READ},
    "auth/<str:vo>_auth_config.json": {"GET": NOTHING},
    "dev-issuer/.well-known/openid-configuration": {"GET": NOTHING},
    "dev-issuer/keys": {"GET": NOTHING},
    "dev-issuer/device": {"POST": NOTHING},
    "dev-issuer/token": {"POST": NOTHING},
    "dev-issuer/verify": {"GET": TOKENS, "POST": TOKENS},
    "": {"GET": READ},
    "search/": {"GET": READ},
    "search/suggestions/": {"GET": READ},
    "tasks/": {"GET": READ},
    "tasks/<int:task_id>/": {"GET": READ},
    "tasks/<int:task_id>/why/": {"GET": READ},
    "sites/<path:name>/": {"GET": READ},
    "sites/<path:name>/why/": {"GET": READ},
    "sites/<path:name>/nodes/": {"GET": READ},
    "sites/<path:name>/data/": {"GET": READ},
    "sites/<path:name>/status/": {"POST": OPERATE},
    "sites/<path:name>/note/": {"POST": OPERATE},
    "queues/": {"GET": READ},
    "queues/tester/": {"GET": READ},
    "queues/<int:queue_id>/": {"GET": READ},
    "shares/": {"GET": READ},
    "shares/<path:name>/": {"GET": READ},
    "shares/<path:name>/why/": {"GET": READ},
    "share-targets/": {"GET": READ},
    "share-targets/change/": {"POST": STEER},
    "tasks/bulk/": {"GET": SUBMIT, "POST": SUBMIT},
    "tasks/<int:task_id>/timeline/": {"GET": READ},
    "tasks/<int:task_id>/do/<slug:name>/": {"GET": SUBMIT, "POST": SUBMIT},
    "tasks/<int:task_id>/histograms/": {"GET": READ},
    "tasks/<int:task_id>/histograms/<int:file_id>/": {"GET": READ},
    "tasks/<int:task_id>/errors/": {"GET": READ},
    "workflows/": {"GET": READ},
    "workflows/check/": {"GET": SUBMIT, "POST": SUBMIT},
    "workflows/node/": {"GET": SUBMIT, "POST": SUBMIT},
    "workflows/packages/bulk/": {"GET": SUBMIT, "POST": SUBMIT},
    "workflows/<int:workflow_id>/": {"GET": READ},
    "workflows/<int:workflow_id>/dagman/": {"GET": READ},
    "workflows/<int:workflow_id>/packages/": {"GET": READ},
    "workflows/<int:workflow_id>/lines/<path:line>/": {"GET": READ},
    "workflows/<int:workflow_id>/do/<slug:name>/": {"GET": SUBMIT, "POST": SUBMIT},
    "errors/": {"GET": READ},
    "errors/pivot/": {"GET": READ},
    "errors/jobs/": {"GET": READ},
    "errors/<int:number>/": {"GET": READ},
    "errors/<int:number>/classify/": {"POST": OPERATE},
    "jobs/": {"GET": READ},
    "jobs/compare/": {"GET": READ},
    "jobs/<int:job_id>/": {"GET": READ},
    "jobs/bulk/": {"GET": SUBMIT, "POST": SUBMIT},
    "jobs/<int:job_id>/timeline/": {"GET": READ},
    "jobs/<int:job_id>/do/<slug:name>/": {"GET": SUBMIT, "POST": SUBMIT},
    "jobs/<int:job_id>/log/": {"GET": READ},
    "jobs/<int:job_id>/why/": {"GET": READ},
    "help/configuration/": {"GET": READ},
    "help/states/": {"GET": READ},
    "help/parameters/": {"GET": READ},
    "help/glossary/": {"GET": READ},
    "help/codes/": {"GET": READ},
    "help/codes/<slug:code>/": {"GET": READ},
    "brokerage/": {"GET": READ},
    "brokerage/what-if/": {"GET": READ},
    "brokerage/<int:verdict_id>/": {"GET": READ},
    "sites/": {"GET": READ},
    "workers/": {"GET": READ},
    "workers/<int:worker_id>/": {"GET": READ},
    "agents/": {"GET": READ},
    "timeouts/": {"GET": READ},
    "agents/<slug:name>/": {"GET": READ},
    "agents/<slug:name>/order/": {"POST": OPERATE},
    "agents/<slug:name>/passes/<int:pass_id>/": {"GET": READ},
    "attention/": {"GET": READ},
    "attention/<int:item_id>/": {"POST": OPERATE},
    "my-tasks/": {"GET": READ},
    "my-tasks/seen/": {"POST": READ},
    "shift/": {"GET": READ},
    "shift/report.txt": {"GET": READ},
    "shift/notes/": {"POST": OPERATE},
    "shift/hand-over/": {"POST": OPERATE},
    "shift/hand-over/<int:handover_id>/acknowledge/": {"POST": OPERATE},
    "api/v1/system/is_alive": {"GET": NOTHING},
    "api/v1/system/get_attributes": {"GET": SITE_DATA},
    "api/v1/statistics/active_job_stats_by_site": {"GET": SITE_DATA},
    "api/v1/statistics/active_job_detailed_stats_by_site": {"GET": SITE_DATA},
    "api/v1/metaconfig/get_resource_types": {"GET": SITE_DATA},
    "api/v1/metaconfig/get_site_specs": {"GET": SITE_DATA},
    "api/v1/metaconfig/get_banned_users": {"GET": STEER},
    "api/v1/job/get_description": {"POST": READ},
    "api/v1/job/get_description_incl_archive": {"POST": READ},
    "api/v1/job/get_metadata_for_analysis_jobs": {"GET": READ},
    "api/v1/job/get_status": {"GET": SITE_DATA},
    "api/v1/job/kill": {"POST": SUBMIT},
    "api/v1/job/set_debug_mode": {"POST": SUBMIT},
    "api/v1/job/submit": {"POST": SUBMIT},
    "api/v1/file_server/upload_file_recovery_request": {"POST": SUBMIT},
    "api/v1/workflow/submit_workflow_raw_request": {"POST": SUBMIT},
    "api/v1/workflow/get_workflow_details": {"GET": READ},
    "api/v1/creds/set_user_secrets": {"POST": SUBMIT},
    "api/v1/creds/get_user_secrets": {"GET": SUBMIT},
    **{f"api/v1/creds/get_{name}": {"GET": SITE_DATA} for name in ("proxy", "token_key", "key_pair", "access_token")},
    "server/panda/put_workflow_request": {"POST": SUBMIT},
    "server/panda/relay_idds_command": {"POST": SUBMIT},
    "server/panda/execute_idds_workflow_command": {"POST": SUBMIT},
    "server/panda/putEventPickingRequest": {"POST": SUBMIT},
    **{
        f"api/v1/task/{name}": {"POST": SUBMIT}
        for name in (
            "kill",
            "finish",
            "retry",
            "reload_input",
            "pause",
            "resume",
            "avalanche",
            "release",
            "increase_attempts",
            "submit",
            "reactivate",
        )
    },
    **{
        f"api/v1/task/get_{name}": {"GET": READ}
        for name in (
            "tasks_detailed_info_since",
            "tasks_modified_since",
            "status",
            "job_ids",
            "task_parameters",
            "detailed_info",
            "parent_detailed_info",
            "details",
            "job_descriptions",
            "datasets_and_files",
        )
    },
    "api/v1/file_server/validate_cache_file": {"POST": SUBMIT},
    "api/v1/file_server/upload_cache_file": {"POST": SUBMIT},
    "api/v1/pilot/acquire_jobs": {"POST": PILOT},
    "api/v1/pilot/update_job": {"POST": PILOT},
    "api/v1/pilot/update_jobs_bulk": {"POST": PILOT},
    "api/v1/pilot/get_job_status": {"GET": PILOT},
    "api/v1/event/acquire_event_ranges": {"POST": PILOT},
    "api/v1/event/update_event_ranges": {"POST": PILOT},
    "api/v1/event/get_available_event_range_count": {"GET": PILOT},
    "api/v1/event/update_single_event_range": {"POST": PILOT},
    "api/v1/event/get_event_range_statuses": {"GET": READ},
    "server/panda/getEventRanges": {"POST": PILOT},
    "server/panda/updateEventRange": {"POST": PILOT},
    "server/panda/checkEventsAvailability": {"POST": PILOT},
    "server/panda/get_events_status": {"POST": READ},
    "server/panda/updateEventRanges": {"POST": PILOT},
    "api/v1/pilot/update_worker_status": {"POST": PILOT},
    "api/v1/pilot/update_worker_node": {"POST": PILOT},
    "api/v1/pilot/update_worker_node_gpu": {"POST": PILOT},
    **{
        f"api/v1/harvester/{name}": {"POST": Right.WORKERS}
        for name in (
            "heartbeat",
            "update_workers",
            "report_worker_statistics",
            "acquire_commands",
            "acknowledge_commands",
            "add_dialogs",
            "update_service_metrics",
        )
    },
    "api/v1/harvester/get_current_worker_id": {"GET": Right.WORKERS},
    "api/v1/harvester/get_worker_statistics": {"GET": SITE_DATA},
    "api/v1/harvester/add_sweep_command": {"POST": STEER},
    "api/v1/harvester/add_target_slots": {"POST": STEER},
    "server/panda/getJob": {"POST": PILOT},
    **{
        f"server/panda/{name}": {"POST": PILOT}
        for name in (
            "updateJob",
            "updateJobsInBulk",
            "updateWorkerPilotStatus",
            "getStatus",
            "checkJobStatus",
            "getKeyPair",
            "getProxy",
        )
    },
    "server/panda/<str:name>": {"GET": NOTHING, "POST": NOTHING},
    "cache/schedconfig/<str:name>.all.json": {"GET": NOTHING},
    "cache/pandaqueues.json": {"GET": NOTHING},
    "cache/ddmendpoints.json": {"GET": NOTHING},
    "cache/<str:name>": {"GET": NOTHING},
    "trf/user/<str:name>": {"GET": NOTHING},
    "api/v2/": {"GET": NOTHING},
    "api/v2/me/": {"GET": NOTHING},
    "api/v2/tasks/": {"GET": READ, "POST": SUBMIT},
    "api/v2/tasks/<bigint:task_id>/progress/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/retries/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/verdicts/": {"GET": READ},
    "api/v2/datasets/": {"GET": READ},
    "api/v2/datasets/<bigint:pk>/": {"GET": READ},
    "api/v2/files/": {"GET": READ},
    "api/v2/files/<bigint:pk>/content": {"GET": READ},
    "api/v2/jobs/<bigint:job_id>/files/": {"GET": READ},
    "api/v2/jobs/<bigint:job_id>/log/": {"GET": READ},
    "api/v2/jobs/<bigint:job_id>/why/": {"GET": READ},
    "api/v2/queues/<path:name>/history/": {"GET": READ},
    "api/v2/queues/<path:name>/status/": {"POST": OPERATE},
    "api/v2/queues/<path:pk>/": {"GET": SITE_DATA},
    "api/v2/attention/": {"GET": READ},
    "api/v2/attention/<bigint:pk>/": {"GET": READ, "POST": OPERATE},
    "api/v2/samples/": {"GET": READ},
    "api/v2/storage/": {"GET": SITE_DATA},
    "api/v2/storage/<path:pk>/": {"GET": SITE_DATA},
    "api/v2/work-queues/": {"GET": READ},
    "api/v2/workflows/": {"GET": READ, "POST": SUBMIT},
    "api/v2/workflows/node-commands/": {"POST": SUBMIT},
    "api/v2/workflows/<bigint:pk>/": {"GET": READ},
    "api/v2/workflows/<bigint:pk>/commands/": {"POST": SUBMIT},
    "api/v2/workflows/<bigint:workflow_id>/packages/": {"GET": READ},
    "api/v2/workflows/<bigint:workflow_id>/packages/<bigint:pk>/": {"GET": READ},
    "api/v2/workers/": {"GET": READ},
    "api/v2/transfers/": {"GET": READ},
    "api/v2/transfer-rules/": {"GET": READ},
    "api/v2/transfer-rules/<bigint:pk>/": {"GET": READ},
    "api/v2/sandboxes/": {"GET": READ},
    "api/v2/errors/<bigint:pk>/": {"GET": READ},
    "api/v2/errors/pivot/": {"GET": READ},
    "api/v2/agents/<slug:pk>/": {"GET": READ},
    "api/v2/agents/<slug:name>/passes/": {"GET": READ},
    "api/v2/tasks/<bigint:pk>/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/params/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/queue/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/subjobs/": {"GET": READ, "POST": SUBMIT},
    "api/v2/catalogue/<path:name>/files/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/datasets/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/jobs/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/log/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/commands/": {"GET": READ, "POST": SUBMIT},
    "api/v2/tasks/<bigint:task_id>/lost-files/": {"POST": SUBMIT},
    "api/v2/tasks/bulk-commands/": {"POST": SUBMIT},
    "api/v2/tasks/<bigint:task_id>/changes/": {"POST": SUBMIT},
    "api/v2/tasks/<bigint:task_id>/why/": {"GET": READ},
    "api/v2/tasks/<bigint:task_id>/what-if/": {"POST": READ},
    "tasks/<int:task_id>/what-if/": {"GET": READ},
    "api/v2/sites/<path:name>/why/": {"GET": READ},
    "api/v2/shares/<path:name>/why/": {"GET": READ},
    "api/v2/datasets/<bigint:dataset_id>/files/": {"GET": READ},
    "api/v2/jobs/": {"GET": READ},
    "api/v2/jobs/<bigint:pk>/": {"GET": READ},
    "api/v2/queues/": {"GET": SITE_DATA},
    "api/v2/agents/": {"GET": READ},
    "api/v2/errors/": {"GET": READ},
    "api/v2/failures/": {"GET": READ},
    "api/v2/shares/": {"GET": READ},
    "api/v2/audit/": {"GET": READ},
    "api/v2/messages/": {"GET": READ, "POST": TELL},
    "api/v2/tokens/": {"GET": READ, "POST": TOKENS},
    "api/v2/tokens/<bigint:pk>/": {"DELETE": TOKENS},
    "api/v2/task-parameters/": {"GET": NOTHING},
    "api/v2/schema/": {"GET": NOTHING},
    "api/docs/": {"GET": NOTHING},
}
DJANGOS_OWN = {"login/", "logout/"}
"""Views that are not ours and cannot name a right; they are open to all."""
BY_TASK = {
    ("api/v2/tasks/<bigint:task_id>/commands/", "POST"),
    ("api/v2/tasks/<bigint:task_id>/changes/", "POST"),
    ("api/v2/tasks/<bigint:task_id>/lost-files/", "POST"),
    ("api/v2/tasks/<bigint:task_id>/subjobs/", "POST"),
}
"""Calls that also look at whose task it is."""
FILES_OF_TASK = {"api/v2/tasks/<bigint:task_id>/outputs.zip"}
"""What a task has made is for those who may fetch it."""

PEOPLE = {NOTHING, READ, SUBMIT, SITE_DATA, TOKENS}
CALLERS: dict[str, set[Right]] = {
    "anonymous": {NOTHING},
    "user": PEOPLE,
    "user by session": PEOPLE,
    "other user": PEOPLE,
    "group manager": PEOPLE,
    "manager of another group": PEOPLE,
    "shifter": PEOPLE | {OPERATE, FETCH_ANY},
    "production": PEOPLE | {COMMAND_ANY, TELL, STEER, FETCH_ANY},
    "administrator": PEOPLE | {COMMAND_ANY, OPERATE, TELL, STEER, FETCH_ANY},
    "pilot": {NOTHING, PILOT, SITE_DATA},
    "worker": {NOTHING, SITE_DATA, TELL, Right.WORKERS, PILOT},
    "user's token for reading": {NOTHING, READ, SITE_DATA},
    "administrator's token for submitting": {NOTHING, READ, SUBMIT, SITE_DATA, FETCH_ANY},
    "user of an OIDC issuer": PEOPLE,
    "production role of an OIDC issuer": PEOPLE | {COMMAND_ANY, TELL, STEER, FETCH_ANY},
    "pilot role of an OIDC issuer": {NOTHING, PILOT, SITE_DATA},
    "user with a certificate": PEOPLE,
    "expired token": set(),
    "revoked token": set(),
}
MAY_COMMAND = {
    "user",
    "user by session",
    "group manager",
    "production",
    "administrator",
    "user of an OIDC issuer",
    "production role of an OIDC issuer",
    "user with a certificate",
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NUMBER = 20_000_000
DN = "/DC=example/CN=Ada Lovelace"
Pattern = tuple[str, URLPattern]


def walk(resolver: Any, before: str = "") -> Iterator[Pattern]:
    for entry in resolver.url_patterns:
        where = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from walk(entry, where)
        else:
            yield where, entry


def addresses(*, admin: bool = False) -> list[Pattern]:
    return [found for found in walk(get_resolver()) if found[0].startswith("admin/") is admin]


def declared(entry: URLPattern) -> dict[str, Right]:
    """The right that a view names for each method; for plain views, which name one right for all, under "*"."""
    view: Any = entry.callback
    if hasattr(view, "right"):
        return {"*": view.right}
    rights = getattr(getattr(view, "cls", None), "rights", {})
    actions: dict[str, str] = getattr(view, "actions", None) or {name: name for name in rights}
    return {
        method.upper(): rights[action] for method, action in actions.items() if action in rights and method != "head"
    }


@pytest.fixture
def client_of(
    make_token: Callable[..., str], make_user: Callable[..., User], issuer: LittleIssuer, settings: Any
) -> Callable[[str], Client]:
    settings.JEDI_OIDC = {"atlas": issuer.provider(roles=frozenset({Role.PRODUCTION, Role.PILOT}), make_users=True)}
    settings.JEDI_X509_HEADER, settings.JEDI_X509_PROXIES = "X-Client-DN", [ip_network("127.0.0.0/8")]

    def bind(name: str, subject: str, by: str) -> None:
        ForeignIdentity.objects.get_or_create(issuer=by, subject=subject, user=make_user(name))

    def make(caller: str) -> Client:
        if caller == "anonymous":
            return Client()
        if caller == "user by session":
            client = Client()
            client.force_login(make_user("ada"))
            return client
        if caller == "expired token":
            token = make_token(days=-1)
        elif "OIDC" in caller:
            role = caller.partition(" role")[0] if " role" in caller else ""
            if not role:
                bind("ada", "subject of ada", issuer.url)
            origin = f"atlas.{role}" if role else "atlas"
            return Client(headers={"authorization": f"Bearer {issuer.token()}", "origin": origin})
        elif caller == "user with a certificate":
            bind("ada", DN, "x509")
            return Client(headers={"x-client-dn": DN})
        elif caller == "manager of another group":
            make_user("ian").groups.add(Group.objects.create(name="manager:phys-top"))
            token = make_token(name="ian")
        elif caller == "user's token for reading":
            token = make_token(scope=Scope.READ)
        elif caller == "administrator's token for submitting":
            token = make_token("administrator", scope=Scope.SUBMIT)
        elif caller == "other user":
            token = make_token(name="eve")
        else:
            token = make_token("user" if caller == "revoked token" else caller)
        if caller == "revoked token":
            row = callers.row_of_token(token)
            assert row is not None
            callers.revoke_token(row)
        return Client(headers={"authorization": f"Bearer {token}"})

    return make


@pytest.fixture
def things(make_task: Callable[..., Task], make_job: Callable[..., Job], make_dataset: Callable[..., Dataset]) -> None:
    """One of each thing that an address can name, all with the same number; the task is ada's."""
    task = make_task(id=NUMBER, user="ada", working_group="phys-higgs")
    make_dataset(task, id=NUMBER)
    make_job(id=NUMBER, task_id=task.id)
    Agent.objects.create(name=str(NUMBER), period_s=60)


def test_every_address_stands_in_the_table() -> None:
    assert sorted(where for where, _ in addresses()) == sorted(EXPECTED)


@pytest.mark.parametrize(("where", "entry"), [pytest.param(*found, id=found[0] or "/") for found in addresses()])
def test_every_view_names_the_right_that_is_expected(where: str, entry: URLPattern) -> None:
    if where in DJANGOS_OWN:
        return
    names = declared(entry)
    assert names, f"{where} names no right"
    expected = EXPECTED[where]
    assert names == ({"*": next(iter(expected.values()))} if "*" in names else expected)


def test_roles_have_the_rights_that_are_expected() -> None:
    for role in Role:
        assert callers.RIGHTS[role] == CALLERS[role.value], role


def test_a_scope_gives_no_right_that_its_owner_has_not() -> None:
    for role in Role:
        everything = {right for right in Right if Caller("x", frozenset({role})).may(right)}
        for scope in Scope:
            assert {r for r in Right if Caller("x", frozenset({role}), scope=scope).may(r)} <= everything


def asked_by(caller: str) -> list[tuple[str, str, Right]]:
    """What a caller asks for: all that must be refused, all that changes something, all that few may do; of the pages that all
    people may read, which take most of the time, one in four, so that several callers of different kinds ask for each.
    """
    calls = [(where, method, right) for where, by_method in EXPECTED.items() for method, right in by_method.items()]
    place = list(CALLERS).index(caller)
    return [
        (where, method, right)
        for number, (where, method, right) in enumerate(calls)
        if FULL
        or method != "GET"
        or right not in PEOPLE
        or "answered" not in expected_outcomes(caller, where, method, right)
        or (number + place) % 4 == 0
    ]


def test_every_address_is_asked_for_by_some_who_may() -> None:
    asked = {
        (where, method)
        for caller in CALLERS
        for where, method, right in asked_by(caller)
        if expected_outcomes(caller, where, method, right) == {"answered"}
    }
    assert {(where, method) for where, by_method in EXPECTED.items() for method in by_method} == asked


@pytest.mark.parametrize("caller", CALLERS)
def test_every_address_answers_those_who_may_and_nobody_else(
    caller: str, client_of: Callable[[str], Client], things: None
) -> None:
    wrong = []
    client = client_of(caller)
    for where, method, right in asked_by(caller):
        path = "/" + re.sub(r"<[^>]+>", str(NUMBER), where)
        body = {"data": "{}", "content_type": "application/json"} if where.startswith("api/") else {}
        answer = client.generic(method, path, **body)
        outcome = judge(answer)
        if outcome not in expected_outcomes(caller, where, method, right):
            wrong.append((method, where, answer.status_code, outcome))
        if where == "logout/" and caller == "user by session":
            client = client_of(caller)
    assert not wrong
    assert not Command.objects.exclude(owner="ada").exists()


def judge(answer: Any) -> str:
    """answered, unknown (who are you?) or refused (you may not). Legacy calls always answer 200, with a code of PanDA's."""
    if answer.wsgi_request.path.startswith("/server/panda/"):
        assert answer.status_code == 200
        if not answer.content.startswith(b'{"StatusCode"'):
            return "answered"  # what the relays of workflows say is a list or a text
        return {StatusCode.PERMISSION: "unknown", StatusCode.ROLE: "refused"}.get(
            answer.json()["StatusCode"], "answered"
        )
    if answer.status_code == 401 or (answer.status_code == 302 and answer["Location"].startswith("/login/?next=")):
        return "unknown"
    return "refused" if answer.status_code == 403 else "answered"


def expected_outcomes(caller: str, where: str, method: str, right: Right) -> set[str]:
    if caller in ("expired token", "revoked token"):
        # A token that is wrong is told so, even where none is needed, except by the plain views that look at none.
        return (
            {"answered"}
            if right is NOTHING and not where.startswith("api/v2/") and where != "api/docs/"
            else {"unknown"}
        )
    if right is not NOTHING and where.startswith(("api/v1/", "server/panda/")) and caller == "user by session":
        return {"unknown"}  # pilots, and PanDA's clients, come with tokens only
    if right not in CALLERS[caller]:
        return {"unknown"} if caller == "anonymous" else {"refused"}
    if (where, method) in BY_TASK and caller not in MAY_COMMAND:
        return {"refused"}
    return {"refused"} if where in FILES_OF_TASK and caller == "other user" else {"answered"}


@pytest.mark.parametrize("caller", ["anonymous", "user", "administrator", "pilot"])
def test_resources_answer_no_other_method(caller: str, client_of: Callable[[str], Client], things: None) -> None:
    client = client_of(caller)
    for where, by_method in EXPECTED.items():
        if not where.startswith("api/v2/"):
            continue
        path = "/" + re.sub(r"<[^>]+>", str(NUMBER), where)
        for method in set(METHODS) - set(by_method):
            assert client.generic(method, path).status_code == 405, (method, where)


@pytest.mark.parametrize("caller", ["anonymous", "user by session", "administrator", "pilot"])
def test_the_admin_is_for_staff_with_a_session(caller: str, client_of: Callable[[str], Client]) -> None:
    client = client_of(caller)  # the administrator comes with a token, which opens no admin
    for number, (where, _) in enumerate(addresses(admin=True)):
        # Whoever has a session is nearest to being let in, and tries all doors.
        if where == "admin/login/" or not (FULL or caller == "user by session" or number % 4 == 0):
            continue
        path = "/" + re.sub(r"<[^>]+>", "1", where.replace("^(?P<url>.*)$", "x").replace("(?P<url>.*)$", "x"))
        path = re.sub(r"\^?\(\?P1[^)]*\)", "auth", path).rstrip("$")
        answer = client.get(path)
        door = "/admin/" if where == "admin/logout/" else "/admin/login/?next="
        assert answer.status_code == 302 and answer["Location"].startswith(door), (where, path, answer)


def test_only_the_hash_of_a_token_is_kept(make_token: Callable[..., str]) -> None:
    token = make_token()
    row = ApiToken.objects.values().get()
    secret = token.rpartition(".")[2]
    assert secret not in str(row) and row["prefix"] == secret[:12]


def test_the_token_of_a_user_reads_as_a_jwt_and_is_checked_as_a_whole(make_user: Callable[..., User]) -> None:
    ada = make_user("ada", first_name="Ada>?~ü", last_name="Lovelace")
    ada.groups.add(Group.objects.create(name="manager:phys-higgs"))
    token = callers.issue_token("laptop", "user", user=ada, lifetime=timedelta(days=1))
    header, claims, secret = token.split(".")
    assert secret.startswith("jedi_") and decoded(header) == {"typ": "JWT", "alg": "jedi-opaque"}
    expires = ApiToken.objects.get().expires
    assert decoded(claims) == {
        "iss": "jedisite",
        "sub": str(ada.pk),
        "name": "Ada>?~ü Lovelace",
        "preferred_username": "ada",
        "groups": ["phys-higgs/production"],
        "exp": int(expires.timestamp()),
    }
    assert callers.caller_of_token(token) is not None
    other = encoded({**decoded(claims), "preferred_username": "root"})
    for forged in (f"{header}.{other}.{secret}", secret, f"x.{claims}.{secret}"):
        assert callers.caller_of_token(forged) is None
    with pytest.raises(AuthenticationFailed):
        callers.caller_of_token(f"{header}.{claims}.")


def decoded(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def encoded(claims: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()


def test_a_token_of_somebody_who_left_is_nobodys(
    make_token: Callable[..., str], make_user: Callable[..., User]
) -> None:
    token = make_token()
    User.objects.filter(username="ada").update(is_active=False)
    assert callers.caller_of_token(token) is None


def test_a_pilot_token_knows_its_site(make_token: Callable[..., str]) -> None:
    caller = callers.caller_of_token(make_token("pilot", site="SITE_A"))
    assert caller == Caller("pilot:pilot", frozenset({Role.PILOT}), "SITE_A")


def test_a_token_is_trusted_for_a_short_time_only(
    make_token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = make_token()
    now = [1000.0]
    monkeypatch.setattr("jedisite.identity.callers.time.monotonic", lambda: now[0])
    assert callers.caller_of_token(token) is not None
    ApiToken.objects.update(revoked=True)  # by another process
    assert callers.caller_of_token(token) is not None
    now[0] += callers.CACHE_S + 0.1
    assert callers.caller_of_token(token) is None


def test_a_group_manager_commands_the_tasks_of_that_group(make_user: Callable[..., User]) -> None:
    ian = make_user("ian", "group manager")
    ian.groups.add(Group.objects.create(name="manager:"))
    caller = callers.caller_of_user(ian)
    assert caller == Caller("ian", frozenset({Role.USER, Role.MANAGER}), manages=frozenset({"phys-higgs"}))
    cases = [("phys-higgs", True), ("phys-top", False), ("", False), (None, False)]
    assert [caller.may_command("ada", group) for group, _ in cases] == [may for _, may in cases]
    assert not replace(caller, scope=Scope.READ).may_command("ian", "phys-higgs")
    assert not replace(caller, manages=frozenset()).may_command("ada", None)


def test_a_group_member_fetches_the_files_of_that_group_and_commands_none_of_its_tasks(
    make_user: Callable[..., User],
) -> None:
    mia = make_user("mia")
    mia.groups.add(*(Group.objects.create(name=name) for name in ("member:phys-higgs", "member:")))
    caller = callers.caller_of_user(mia)
    assert caller == Caller("mia", frozenset({Role.USER}), member_of=frozenset({"phys-higgs"}))
    cases = [("phys-higgs", True), ("phys-top", False), ("", False), (None, False)]
    assert [caller.may_fetch("ada", group) for group, _ in cases] == [may for _, may in cases]
    assert not caller.may_command("ada", "phys-higgs") and not caller.may_submit_for("phys-higgs")
    assert callers.groups_managed_by(mia) == []


@pytest.mark.parametrize(
    ("roles", "name", "may"),
    [
        ({Role.USER}, "ada", True),
        ({Role.USER}, "eve", False),
        ({Role.PRODUCTION}, "eve", True),
        ({Role.SHIFTER}, "eve", False),
        ({Role.PILOT}, "ada", False),
        ({Role.ANONYMOUS}, "", False),
        ({Role.ADMINISTRATOR}, "root", True),
    ],
)
def test_who_may_command_the_task_of_ada(roles: set[Role], name: str, may: bool) -> None:
    assert Caller(name, frozenset(roles)).may_command("ada") is may


class Silent(APIView):
    permission_classes = [HasRight]

    def get(self, request: Any) -> Response:
        return Response()


class Partial(Silent):
    rights = {"post": Right.NOTHING}


def test_a_view_that_names_no_right_answers_nobody() -> None:
    with pytest.raises(ImproperlyConfigured):
        Silent.as_view()(RequestFactory().get("/api/x"))
    assert Partial.as_view()(RequestFactory().get("/api/x")).status_code == 401
