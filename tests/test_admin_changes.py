"""What people change in the admin: only what they may, only the changed columns, and every change is in the audit trail."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from brokerage_app.formulas.published_software import parse_published
from brokerage_app.formulas.software import accepts, needs_of_production
from brokerage_app.grid.repository import load_grid
from brokerage_app.models import (
    GdpConfig,
    GlobalShare,
    JobCount,
    Queue,
    QueueStatusLog,
    ResourceType,
    SoftwareTags,
    StorageEndpoint,
    WorkQueue,
)
from brokerage_app.policy.parameters import PARAMETERS
from jedisite.identity import callers
from jedisite.models import Agent, ApiToken, AuditEntry
from jedisite.vocabulary.roles import RIGHT_WORDS, Right
from tasks_app.models import Command, Dataset, Job, RetryRule, Task, TaskParams

pytestmark = pytest.mark.django_db


@pytest.fixture
def grace(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("grace"))
    return client


@pytest.fixture
def staff(client: Client) -> Callable[..., Client]:
    """A client of somebody called `name` with some rights in the admin and in some groups."""

    def make(*rights: str, name: str = "lise", groups: tuple[str, ...] = ()) -> Client:
        user = User.objects.create_user(name, is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=rights))
        user.groups.set([Group.objects.get_or_create(name=g)[0] for g in groups])
        client.force_login(user)
        return client

    return make


def trail(action: str) -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action=action).order_by("id"))


def queue_form(**changes: Any) -> dict[str, Any]:
    values = {"site_name": "A", "cloud": "", "status": "online", "status_reason": "", "core_count": 1, "core_power": 10}
    more = {"capability": "ucore", "min_memory_mb": 0, "min_walltime_s": 0, "catchall": "", "data": "{}", "storage": ""}
    others = {"type": "unified", "grid_type": "GRID", "max_input_mb": 0, "pledged_cores": 0, "transferring_limit": 0}
    return {**values, **more, **others, "params": "{}", "releases": "[]", **changes}


def test_a_queue_is_made_changed_and_deleted_with_a_trail(grace):
    made = grace.post(reverse("admin:brokerage_app_queue_add"), queue_form(name="SITE/A_1"))
    assert made.status_code == 302
    page = reverse("admin:brokerage_app_queue_change", args=["SITE_2FA_5F1"])
    assert grace.post(page, queue_form(status="offline", status_reason="power cut")).status_code == 302
    queue = Queue.objects.get()
    assert (queue.name, queue.status) == ("SITE/A_1", "offline")
    assert grace.post(page.replace("change/", "delete/"), {"post": "yes"}).status_code == 302
    assert not Queue.objects.exists()
    added, changed, deleted = AuditEntry.objects.order_by("id")
    assert [(e.actor, e.action, e.object_type, e.object_id) for e in (added, changed, deleted)] == [
        ("grace", what, "queue", "SITE/A_1") for what in ("admin.add", "queue.status", "admin.delete")
    ]
    assert added.details["values"]["core_count"] == 1
    assert (changed.details, changed.reason) == ({"status": ["online", "offline"]}, "power cut")
    assert deleted.details["values"]["status"] == "offline"
    assert list(QueueStatusLog.objects.order_by("id").values_list("new", "by")) == [
        ("online", "grace"),
        ("offline", "grace"),
    ]


def test_a_status_of_a_queue_is_set_for_a_time_with_a_new_reason_and_its_page_tells_its_history(grace):
    Queue.objects.create(name="A", site_name="A")
    page, end = reverse("admin:brokerage_app_queue_change", args=["A"]), timezone.now() + timedelta(hours=2)
    until = {"status_until_0": f"{end:%Y-%m-%d}", "status_until_1": f"{end:%H:%M:%S}"}
    values = queue_form(status="brokeroff", status_reason="storage is down", cloud="X", **until)
    assert grace.post(page, {**values, "_why": "agreed in the meeting"}).status_code == 302
    changed, more = AuditEntry.objects.order_by("id")
    assert (changed.details["after"], changed.reason) == ("online", "storage is down")
    assert (more.details, more.reason) == ({"changed": {"cloud": ["", "X"]}}, "agreed in the meeting")
    shown = grace.get(page).text
    assert "storage is down" in shown and ", then online" in shown and f'value="{end:%H:%M:%S}"' in shown
    for wrong, field in (
        ({"status": "offline"}, "status_reason"),
        ({"status_until_0": "", "status_until_1": ""}, "status_reason"),
        ({"status_reason": "x", "status_until_0": "2001-01-01"}, "status_until"),
        ({"status_reason": "", "status": "offline"}, "status_reason"),
    ):
        assert list(errors_of(grace.post(page, {**values, **wrong}))) == [field], wrong
    assert Queue.objects.get().status == "brokeroff" and QueueStatusLog.objects.count() == 2


def test_a_form_sent_without_a_change_leaves_no_trail(grace):
    Queue.objects.create(name="A", site_name="A")
    assert grace.post(reverse("admin:brokerage_app_queue_change", args=["A"]), queue_form()).status_code == 302
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("chosen_in_the_list", [False, True])
def test_a_queue_with_open_jobs_is_not_deleted(
    grace: Client, make_job: Callable[..., Job], make_task: Callable[..., Task], chosen_in_the_list: bool
) -> None:
    for name in ("A", "B"):
        Queue.objects.create(name=name, site_name="A")
    waits = [make_job(site="A", status="activated"), make_job(site="A", status="transferring")]
    make_job(site="A", status="finished")
    make_task(site="A", status="running")
    make_task(site="A", status="done")
    for status, included in (
        ("pending", "A"),
        ("running", ["A", "B"]),
        ("running", "?"),
        ("running", "B"),
        ("done", "A"),
    ):
        TaskParams.objects.create(task=make_task(status=status), params={"includedSite": included})
    page, sent = reverse("admin:brokerage_app_queue_delete", args=["A"]), {"post": "yes"}
    if chosen_in_the_list:
        page = reverse("admin:brokerage_app_queue_changelist")
        sent |= {"action": "delete_selected", "_selected_action": ["A", "B"]}
    said = grace.post(page, sent).content.decode()
    named = "2 open tasks are bound to it and 1 open task names it together with other queues."
    assert f"A has 2 open jobs, and {named} Set it offline first" in said
    assert "Nothing was deleted" in said and Queue.objects.count() == 2 and not trail("admin.delete")
    Job.objects.filter(id__in=[job.id for job in waits]).update(status="closed")
    asked = (grace.post(page, {**sent, "post": ""}) if chosen_in_the_list else grace.get(page)).content.decode()
    assert f"A has no open job, but {named}" in asked
    grace.post(page, sent)
    assert not Queue.objects.filter(name="A").exists()


def test_the_name_of_a_queue_cannot_be_changed(grace):
    Queue.objects.create(name="A", site_name="A")
    grace.post(reverse("admin:brokerage_app_queue_change", args=["A"]), queue_form(name="B", cloud="X"))
    assert list(Queue.objects.values_list("name", "cloud")) == [("A", "X")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_memory_mb": 100, "min_memory_mb": 200},
        {"max_walltime_s": 1, "min_walltime_s": 2},
        {"core_count": -1},
        {"core_power": "nan"},
        {"core_count": 2**31},
        {"status": "broken"},
        {"data": "{"},
        {"storage": "none of this name"},
        {"site_name": ""},
    ],
)
def test_a_queue_with_a_wrong_value_is_not_stored(grace, wrong):
    answer = grace.post(reverse("admin:brokerage_app_queue_add"), queue_form(name="A", **wrong))
    assert answer.status_code == 200 and answer.context["adminform"].errors
    assert not Queue.objects.exists() and not AuditEntry.objects.exists()


def test_software_tags_count_from_the_next_decision_on_and_say_what_brokers_would_pass_over(grace):
    Queue.objects.create(name="A", site_name="A")
    add, needs = reverse("admin:brokerage_app_softwaretags_add"), needs_of_production("Athena-24.0.1", "x86_64-el9")

    def refused() -> Any:
        view = load_grid(timezone.now()).sites["A"]
        return accepts(needs, parse_published(view.software, releases=view.releases))

    assert refused().detail == "needs Athena 24.0.1 on x86_64-el9; the site publishes no software"
    for queue, data, says in (
        ("B", "{}", "There is no queue B; ALL stands for tags that are valid everywhere."),
        ("A", '{"tag": []}', "tag is not known; there are cmtconfigs, containers, cvmfs, tags, architectures."),
    ):
        answer = grace.post(add, {"queue": queue, "data": data})
        assert says in str(answer.context["adminform"].errors)
    assert not SoftwareTags.objects.exists()
    tag = {"cmtconfig": "x86_64-el9", "project": "Athena", "release": "24.0.1"}
    assert grace.post(add, {"queue": "A", "data": json.dumps({"tags": [tag]})}).status_code == 302
    assert refused() is None


def test_space_that_is_given_by_hand_is_of_now_and_other_changes_leave_its_time(grace):
    long_ago = timezone.now() - timedelta(days=9)
    StorageEndpoint.objects.create(name="SE", site_name="A", type="DATADISK", space_free_gb=5, updated=long_ago)
    page = reverse("admin:brokerage_app_storageendpoint_change", args=["SE"])
    form = {"site_name": "A", "type": "DATADISK", "space_free_gb": 5, "states": "{}", "data": "{}"}
    assert grace.post(page, {**form, "token": "T"}).status_code == 302
    assert StorageEndpoint.objects.get().token == "T" and StorageEndpoint.objects.get().updated == long_ago
    assert grace.post(page, {**form, "token": "T", "space_free_gb": 900}).status_code == 302
    found = StorageEndpoint.objects.get()
    assert found.space_free_gb == 900 and found.updated > timezone.now() - timedelta(hours=1)


@pytest.mark.parametrize(
    ("path", "says"),
    [("data", "begins with /"), ("/a/../b", "no . or .."), ("/of/s", "is that of S"), (__file__, "is none")],
)
def test_a_storage_gets_no_folder_that_cannot_work(grace, path, says):
    StorageEndpoint.objects.create(name="S", site_name="A", path="/of/s")
    form = {"name": "SE", "site_name": "A", "type": "DATADISK", "states": "{}", "data": "{}", "path": path}
    answer = grace.post(reverse("admin:brokerage_app_storageendpoint_add"), form)
    assert answer.status_code == 200 and says in answer.content.decode()
    assert StorageEndpoint.objects.count() == 1


def test_storage_resource_types_and_work_queues_are_edited(grace):
    posts = {
        StorageEndpoint: {"name": "SE", "site_name": "A", "type": "DATADISK", "path": "/data"},
        ResourceType: {"name": "SCORE", "position": 1, "min_cores": 1, "max_cores": 1},
        WorkQueue: {"name": "group", "type": "managed", "vo": "test", "order": 3, "share": 20, "stretchable": 1},
    }
    for model, values in posts.items():
        name = model._meta.model_name
        assert grace.post(reverse(f"admin:brokerage_app_{name}_add"), values).status_code == 302
        row = model.objects.get()
        page = reverse(f"admin:brokerage_app_{name}_change", args=[row.pk])
        assert grace.post(page, {**values, "site_name": "B", "position": 2, "share": 30}).status_code == 302
        assert [e.object_type for e in trail("admin.change")][-1] == name
        answer = grace.post(
            reverse(f"admin:brokerage_app_{name}_changelist"),
            {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
        )
        assert answer.status_code == 302 and not model.objects.exists()
    assert len(trail("admin.add")) == len(trail("admin.change")) == len(trail("admin.delete")) == 3


def test_changing_an_agent_undoes_nothing_that_it_did_meanwhile(grace, monkeypatch):
    agent = Agent.objects.create(name="x", period_s=5, fence=1)
    later = timezone.now() + timedelta(minutes=2)
    from jedisite.admin.installation_admin import AgentForm

    clean = AgentForm.clean_period_s

    def meanwhile(form: Any) -> float:
        Agent.objects.filter(pk="x").update(fence=7, lease_owner="me", lease_until=later)
        return clean(form)

    monkeypatch.setattr(AgentForm, "clean_period_s", meanwhile)
    page = reverse("admin:jedisite_agent_change", args=["x"])
    posted = {"period_s": 30, "paused": "on", "fence": 99, "lease_owner": "you", "name": "y"}
    assert grace.post(page, posted).status_code == 302
    agent.refresh_from_db()
    assert (agent.period_s, agent.paused) == (30, True)
    assert (agent.fence, agent.lease_owner, agent.lease_until) == (7, "me", later)
    assert trail("admin.change")[0].details == {"changed": {"period_s": [5.0, 30.0], "paused": [False, True]}}


@pytest.mark.parametrize("period", ["0", "-1", "nan", "inf", "1e9", "", "x"])
def test_an_agent_keeps_its_period_when_the_new_one_makes_no_sense(grace, period):
    Agent.objects.create(name="x", period_s=5)
    assert grace.post(reverse("admin:jedisite_agent_change", args=["x"]), {"period_s": period}).status_code == 200
    assert Agent.objects.get(pk="x").period_s == 5


def run_now(client: Client, *names: str) -> Any:
    posted = {"action": "run_now", "_selected_action": list(names)}
    return client.post(reverse("admin:jedisite_agent_changelist"), posted, follow=True)


def test_run_now_makes_an_agent_due_unless_it_is_paused_or_gone(grace):
    later = timezone.now() + timedelta(hours=1)
    Agent.objects.update(due_at=later)
    Agent.objects.filter(pk="adder").update(paused=True)
    Agent.objects.create(name="gone", period_s=5, due_at=later)
    answer = run_now(grace, "feeder", "adder", "gone")
    assert (
        "feeder is due now" in answer.text
        and "adder is paused" in answer.text
        and "gone is no longer part" in answer.text
    )
    assert set(Agent.objects.filter(due_at__lt=later).values_list("name", flat=True)) == {"feeder"}
    assert [(e.actor, e.object_id) for e in trail("agent.run")] == [("grace", "feeder")]


def test_agents_are_operated_by_shifters_only(staff):
    Agent.objects.update(due_at=timezone.now() + timedelta(hours=1))
    before = Agent.objects.get(pk="feeder").due_at
    client = staff("view_agent", "change_agent")
    run_now(client, "feeder")
    assert client.post(reverse("admin:jedisite_agent_change", args=["feeder"]), {"period_s": 9}).status_code == 403
    assert Agent.objects.get(pk="feeder").due_at == before
    client = staff("view_agent", "change_agent", name="otto", groups=("shift",))
    run_now(client, "feeder")
    assert client.post(reverse("admin:jedisite_agent_change", args=["feeder"]), {"period_s": 9}).status_code == 302
    agent = Agent.objects.get(pk="feeder")
    assert agent.due_at < before and agent.period_s == 9


def test_what_a_schedule_runs_cannot_be_changed(grace):
    from django_q.models import Schedule

    row = Schedule.objects.get(name="agent feeder")
    posted = {"func": "os.system", "args": "'x'", "name": "y", "schedule_type": "I", "minutes": 2, "repeats": -1}
    posted |= {"next_run_0": "2030-01-01", "next_run_1": "00:00:00"}
    assert grace.post(reverse("admin:django_q_schedule_change", args=[row.pk]), posted).status_code == 302
    after = Schedule.objects.get(pk=row.pk)
    assert (after.func, after.args, after.name) == (row.func, row.args, row.name)
    assert after.minutes == 2
    assert trail("admin.change")[0].details["changed"]["minutes"] == [1, 2]


# Tokens


def ask_token(client: Client, **changes: Any) -> Any:
    values = {"name": "site A", "kind": "pilot", "site": "SITE_A", "lifetime_days": 7, "user": ""}
    return client.post(reverse("admin:jedisite_apitoken_add"), {**values, **changes})


def test_a_token_is_shown_once_works_and_is_revoked(grace):
    assert "There is no queue" in ask_token(grace).text and not ApiToken.objects.exists()
    Queue.objects.create(name="SITE_A", site_name="A")
    answer = ask_token(grace)
    token = answer.context["token"]
    assert token in answer.text and "no-store" in answer["Cache-Control"]
    callers._known.clear()
    caller = callers.caller_of_token(token)
    assert caller is not None and caller.site == "SITE_A"
    row = ApiToken.objects.get()
    listed = grace.get(reverse("admin:jedisite_apitoken_changelist")).text
    page = grace.get(reverse("admin:jedisite_apitoken_change", args=[row.pk])).text
    assert token not in listed + page and row.prefix in listed
    posted = {"action": "revoke", "_selected_action": [row.pk]}
    assert "1 token was revoked" in grace.post(reverse("admin:jedisite_apitoken_changelist"), posted, follow=True).text
    callers._known.clear()
    assert callers.caller_of_token(token) is None
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["token.issue", "token.revoke"]
    assert token not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "user", "site": ""},
        {"kind": "worker"},
        {"kind": "god"},
        {"lifetime_days": 0},
        {"lifetime_days": 367},
        {"lifetime_days": "x"},
        {"name": ""},
        {"user": "1"},
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(grace, wrong):
    wrong = {**wrong, "user": User.objects.get().pk} if "user" in wrong else wrong
    answer = ask_token(grace, **wrong)
    assert answer.status_code == 200 and answer.context["form"].errors and answer.context["token"] is None
    assert not ApiToken.objects.exists() and not AuditEntry.objects.exists()


def test_staff_make_tokens_for_themselves_and_for_nobody_else(staff):
    other = User.objects.create_superuser("grace")
    client = staff("add_apitoken", "view_apitoken")
    me = User.objects.get(username="lise")
    assert ask_token(client).context["token"] is None
    assert ask_token(client, kind="user", site="", user=other.pk).context["token"] is None
    assert "grace" not in client.get(reverse("admin:jedisite_apitoken_add")).text
    token = ask_token(client, kind="user", site="", user=me.pk).context["token"]
    caller = callers.caller_of_token(token)
    assert caller is not None and caller.name == "lise"
    client.post(reverse("admin:jedisite_apitoken_changelist"), {"action": "revoke", "_selected_action": [1]})
    assert not ApiToken.objects.filter(revoked=True).exists()


# Accounts


def user_form(user: User, **changes: Any) -> dict[str, Any]:
    joined = user.date_joined
    values = {"username": user.username, "first_name": "", "last_name": "", "email": "", "is_active": "on"}
    times = {"date_joined_0": joined.date().isoformat(), "date_joined_1": joined.time().isoformat()}
    return {**values, **times, **changes}


def test_an_administrator_gives_rights_and_the_trail_says_which(grace):
    group = Group.objects.create(name="shift")
    ada = User.objects.create_user("ada")
    page = reverse("admin:auth_user_change", args=[ada.pk])
    assert grace.post(page, user_form(ada, groups=[group.pk], is_staff="on")).status_code == 302
    ada.refresh_from_db()
    assert ada.is_staff and list(ada.groups.all()) == [group]
    assert trail("admin.change")[0].details == {"changed": {"is_staff": [False, True], "groups": [[], ["shift"]]}}


def test_a_password_never_reaches_the_trail(grace):
    words = {"password1": "engine-of-1843", "password2": "engine-of-1843", "usable_password": "true"}
    assert grace.post(reverse("admin:auth_user_add"), {"username": "ada", **words}).status_code == 302
    ada = User.objects.get(username="ada")
    assert ada.check_password("engine-of-1843")
    again = {"password1": "notes-on-1842", "password2": "notes-on-1842", "usable_password": "true"}
    assert grace.post(reverse("admin:auth_user_password_change", args=[ada.pk]), again).status_code == 302
    hashed = ada.password
    ada.refresh_from_db()
    assert ada.check_password("notes-on-1842")
    written = str(list(AuditEntry.objects.values()))
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["admin.add", "admin.change"]
    assert not any(secret in written for secret in ("engine-of", "notes-on", hashed, ada.password))


def test_staff_who_edit_accounts_cannot_raise_anybody(staff):
    group = Group.objects.create(name="production")
    chief = User.objects.create_superuser("grace")
    ada = User.objects.create_user("ada")
    client = staff("view_user", "change_user", "delete_user", "change_group", "add_group", "delete_group")
    me = User.objects.get(username="lise")
    for user in (ada, me):
        raised = user_form(user, is_superuser="on", is_staff="on", groups=[group.pk], first_name="X")
        assert client.post(reverse("admin:auth_user_change", args=[user.pk]), raised).status_code == 302
        user.refresh_from_db()
        assert user.first_name == "X" and not user.is_superuser and not user.groups.exists()
    assert not ada.is_staff
    assert client.post(reverse("admin:auth_user_change", args=[chief.pk]), user_form(chief)).status_code == 403
    assert client.post(reverse("admin:auth_user_password_change", args=[chief.pk]), {}).status_code == 403
    assert client.post(reverse("admin:auth_user_delete", args=[chief.pk]), {"post": "yes"}).status_code == 403
    assert client.post(reverse("admin:auth_group_change", args=[group.pk]), {"name": "shift"}).status_code == 403


# Commands to tasks


def command(client: Client, name: str, *tasks: Task, **more: Any) -> Any:
    posted = {"action": f"{name}_tasks", "_selected_action": [t.pk for t in tasks], **more}
    return client.post(reverse("admin:tasks_app_task_changelist"), posted, follow="reason" in more)


@pytest.mark.parametrize("name", ["pause", "resume", "kill", "finish", "retry"])
def test_a_command_asks_for_a_reason_and_is_given_to_tasks_that_accept_it(grace, make_task, name):
    fits = make_task(status={"resume": "paused", "retry": "finished"}.get(name, "running"))
    Dataset.objects.create(task=fits, name="user.ada.in", type="input", files=3, files_failed=1)
    not_now = make_task(status="broken")
    asked = command(grace, name, fits, not_now)
    assert asked.status_code == 200 and 'name="reason"' in asked.text and str(fits.pk) in asked.text
    assert not Command.objects.exists()
    assert 'name="reason"' in command(grace, name, fits, not_now, reason=" ").text
    assert not Command.objects.exists()
    answer = command(grace, name, fits, not_now, reason="disk is full")
    assert f"Task {not_now.pk} is broken" in answer.text and "was sent to 1 task." in answer.text
    given = Command.objects.get()
    assert (given.task_id, given.name, given.owner, given.comment) == (fits.pk, name, "grace", "disk is full")
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.action, entry.object_id, entry.reason) == ("grace", name, str(fits.pk), "disk is full")
    fits.refresh_from_db()
    assert fits.status != {"pause": "paused", "kill": "aborting"}.get(name)


def test_commands_with_parameters_have_their_fields_and_name_what_does_not_fit(grace, make_task):
    task = make_task(status="running")
    asked = command(grace, "reassign", task).text
    for field in ("site", "nucleus", "cloud", "back", "mode"):
        assert f'name="{field}"' in asked
    for wrong, says in (
        ({}, "Site: Name exactly one of site, nucleus, cloud."),
        ({"site": "A", "cloud": "B"}, "Name exactly one of"),
        ({"site": "NOWHERE"}, "NOWHERE"),
    ):
        answer = command(grace, "reassign", task, reason="x", **wrong).text
        assert says in answer and 'name="reason"' in answer, wrong
        assert not Command.objects.exists()
    assert 'name="attempts"' in command(grace, "increase_attempts", task).text
    Queue.objects.create(name="SITE_A", site_name="A", status="online")
    assert "was sent to 1 task." in command(grace, "reassign", task, reason="x", site="SITE_A", mode="soft").text
    assert Command.objects.get().parameters == {"site": "SITE_A", "mode": "soft"}


def test_staff_command_their_own_tasks_and_production_managers_all(staff, make_task):
    task = make_task(user="ada")
    mine = make_task(user="lise")
    answer = command(staff("view_task"), "pause", task, mine, reason="because")
    assert f"Task {task.pk} belongs to ada" in answer.text
    assert [c.task_id for c in Command.objects.all()] == [mine.pk]
    command(staff("view_task", name="otto", groups=("production",)), "pause", task, reason="because")
    assert [c.owner for c in Command.objects.filter(task=task)] == ["otto"]


def test_too_many_tasks_at_once_are_refused(grace, make_task, monkeypatch):
    from tasks_app.admin import command_actions

    monkeypatch.setattr(command_actions, "MOST_TASKS", 2)
    answer = command(grace, "kill", *(make_task() for _ in range(3)), reason="x")
    assert "at most 2" in answer.text and not Command.objects.exists()


def test_names_of_tasks_are_shown_escaped(grace, make_task):
    task = make_task(name="<script>alert(1)</script>", error_dialog="<script>alert(2)</script>")
    for answer in (
        grace.get(reverse("admin:tasks_app_task_changelist")),
        grace.get(reverse("admin:tasks_app_task_change", args=[task.pk])),
        command(grace, "kill", task),
    ):
        assert "<script>alert" not in answer.text


def rule_form(**changes: Any) -> dict[str, Any]:
    values = {
        "error_source": "pilot",
        "error_code": 1171,
        "pattern": "",
        "architecture": "",
        "release": "",
        "work_queue": "",
    }
    return {**values, "action": "no_retry", "parameters": "", "active": "on", "description": "", **changes}


def test_a_retry_rule_is_made_and_its_empty_conditions_are_none(grace):
    RetryRule.objects.all().delete()
    made = grace.post(
        reverse("admin:tasks_app_retryrule_add"), rule_form(action="limit_retry", parameters="maxAttempt=2")
    )
    assert made.status_code == 302
    row = RetryRule.objects.get()
    assert (row.pattern, row.architecture, row.release, row.parameters) == (None, None, None, "maxAttempt=2")
    assert [e.object_type for e in trail("admin.add")] == ["retryrule"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"pattern": "("}, "pattern"),
        ({"action": "limit_retry"}, "parameters"),
        ({"action": "limit_retry", "parameters": "maxAttempt=0"}, "parameters"),
        ({"action": "reduce_input", "parameters": "steps=4/2/1"}, "parameters"),
        ({"parameters": "often"}, "parameters"),
        ({"action": "try_harder"}, "action"),
        ({"error_source": "nobody"}, "error_source"),
        ({"error_code": "many"}, "error_code"),
    ],
)
def test_a_retry_rule_with_a_wrong_value_names_its_field(grace, wrong, field):
    before = RetryRule.objects.count()
    answer = grace.post(reverse("admin:tasks_app_retryrule_add"), rule_form(**wrong))
    assert answer.status_code == 200 and list(answer.context["adminform"].form.errors) == [field]
    assert RetryRule.objects.count() == before


def errors_of(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 200
    return dict(answer.context["adminform"].errors)


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"criteria": "processType = :p1", "variables": "p1:x"}, "criteria", "There is no attribute processType"),
        (
            {"criteria": "site = :p2", "variables": "p1:x"},
            "criteria",
            "The variable :p2 has no value (at character 8).",
        ),
        ({"criteria": "campaign = 'a'", "partition_id": -1}, "criteria", "A partition has no criteria"),
        ({"partition_id": 4711}, "partition_id", "No partition has the id 4711."),
        ({"partition_id": 1}, "partition_id", "P is a partition of type user of vo test."),
        ({"share": -1}, "share", "This cannot be negative; it is -1."),
        ({"stretchable": 2}, "stretchable", "1 or 0 or empty; this is 2."),
        ({"status": "aktiv"}, "status", "active or inactive or empty; this is aktiv."),
    ],
)
def test_a_work_queue_that_could_not_work_is_not_stored(grace, wrong, field, says):
    WorkQueue.objects.create(id=1, name="P", type="user", vo="test", partition_id=-1)
    values = {"name": "group", "type": "managed", "vo": "test", "order": 3, **wrong}
    found = errors_of(grace.post(reverse("admin:brokerage_app_workqueue_add"), values))
    assert list(found) == [field] and says in found[field][0]
    assert WorkQueue.objects.count() == 1


def test_a_partition_with_sub_queues_stays_a_partition(grace):
    partition = WorkQueue.objects.create(name="P", type="user", vo="test", partition_id=-1)
    values = {"name": "sub", "type": "user", "vo": "test", "partition_id": partition.id, "criteria": "campaign IS NULL"}
    assert grace.post(reverse("admin:brokerage_app_workqueue_add"), values).status_code == 302
    page = reverse("admin:brokerage_app_workqueue_change", args=[partition.pk])
    found = errors_of(grace.post(page, {"name": "P", "type": "user", "vo": "test"}))
    assert found == {"partition_id": ["This is the partition of 1 queue, so it must stay one (-1)."]}


def test_global_shares_are_edited_and_one_that_could_not_work_is_not_stored(grace):
    add, values = reverse("admin:brokerage_app_globalshare_add"), {"name": "Analysis", "value": 20}
    assert grace.post(add, values).status_code == 302
    below = {"name": "User", "value": 9, "parent": "Analysis", "prod_source_label": "user|test", "working_group": " "}
    assert grace.post(add, below).status_code == 302
    share = GlobalShare.objects.get(pk="User")
    assert (share.parent_id, share.working_group, share.campaign) == ("Analysis", " ", None)
    for wrong, field, says in (
        ({"value": -1}, "value", "This cannot be negative; it is -1."),
        ({"parent": "nowhere"}, "parent", "Select a valid choice"),
        ({"campaign": "(mc"}, "campaign", "'(mc' is not a regular expression: missing )"),
        ({"campaign": "mc(?!23)"}, "campaign", "'mc(?!23)' looks ahead or behind with (?!, which is not supported."),
        ({"throttled": "x"}, "throttled", "Select a valid choice"),
    ):
        found = errors_of(grace.post(add, {"name": "X", "value": 1, **wrong}))
        assert list(found) == [field] and says in found[field][0]
    page = reverse("admin:brokerage_app_globalshare_change", args=["Analysis"])
    found = errors_of(grace.post(page, {"value": 1, "parent": "User"}))
    assert list(found) == ["parent"] and "'User' is below 'Analysis'" in found["parent"][0]
    assert sorted(GlobalShare.objects.values_list("name", flat=True)) == ["Analysis", "User"]
    GlobalShare.objects.create(name="Old", value=1, campaign="mc(?!23)")
    listed = grace.get(reverse("admin:brokerage_app_globalshare_changelist")).content.decode()
    assert (
        "campaign that matches nothing: " in listed
        and "looks ahead or behind with (?!, which is not supported" in listed
    )


def test_a_work_queue_is_tried_before_it_is_saved_with_a_task_and_with_attributes(grace):
    WorkQueue.objects.create(
        id=1, name="first", type="managed", vo="atlas", order=1, share=30, criteria="coreCount > 8"
    )
    queue = WorkQueue.objects.create(id=2, name="rest", type="managed", vo="atlas", order=2, share=10)
    task = Task.objects.create(
        id=7,
        name="x",
        status="running",
        user="ada",
        task_type="prod",
        vo="atlas",
        prod_source_label="managed",
        core_count=8,
        work_queue=queue,
    )
    page = reverse("admin:brokerage_app_workqueue_change", args=[1])
    values = {
        "name": "first",
        "type": "managed",
        "vo": "atlas",
        "order": 1,
        "share": 10,
        "criteria": "NOT coreCount < 8",
    }

    def tried(**more: Any) -> Any:
        answer = grace.post(page, {**values, "_try": "1", **more})
        assert answer.status_code == 200
        return answer

    found = tried(**{"_try-task": task.id}).context["tried"]
    assert (found["stored"].mapped.queue.name, found["edited"].mapped.queue.name) == ("rest", "first")
    assert found["stored"].tried[0].why == "coreCount > 8 is false: coreCount is 8"
    assert [(c.text, c.met, c.has) for c in found["clauses"]] == [("coreCount >= 8", True, "coreCount is 8")]
    assert [(p.queue.name, p.full_before, p.full, p.now_before, p.now) for p in found["parts"]] == [
        ("first", 75, 50, 0, 0),
        ("rest", 25, 50, 100, 100),
    ]
    answer = tried(**{"_try-described": '{"vo": "atlas", "prodSourceLabel": "managed", "coreCount": 1}'})
    assert "coreCount &gt;= 8 is false: coreCount is 1" in answer.text and "rest" in answer.text
    assert tried(criteria="coreCount > ", **{"_try-task": task.id}).context["tried"]["edited"] is None
    for wrong, says in (
        ({"_try-task": 5}, "There is no task 5."),
        ({"_try-described": "{"}, "This is not JSON"),
        ({"_try-described": '{"cores": 1}'}, "There is no attribute &#x27;cores&#x27;"),
        ({"_try-described": '{"coreCount": "8"}'}, "coreCount is a whole number, not &#x27;8&#x27;"),
        ({"_try-described": '{"coreCount": 99999999999}'}, "which no task has"),
        ({"_try-described": "{}", "_try-task": task.id}, "not both"),
    ):
        assert says in tried(**wrong).text, wrong
    assert WorkQueue.objects.get(pk=1).share == 30 and not AuditEntry.objects.exists()


def test_retry_rules_are_tried_with_an_error_and_with_a_job(grace):
    RetryRule.objects.all().delete()
    limit = RetryRule.objects.create(
        error_source="pilot", error_code=1200, action="limit_retry", parameters="maxAttempt=2", pattern="no space"
    )
    RetryRule.objects.create(error_source="pilot", error_code=1200, action="increase_memory", active=False)
    job = Job.objects.create(
        id=6000,
        status="failed",
        user="ada",
        task_id=10_000_000,
        pilot_error_code=1200,
        pilot_error_diag="no space left",
        exe_error_code=65,
    )
    page = reverse("admin:tasks_app_retryrule_try")
    answer = grace.get(page, {"_try": "1", "_try-job": job.pk})
    found = answer.context["tried"]
    assert [(j.rule.id, j.effect) for j in found["applied"]] == [(limit.id, "the inputs get at most 2 attempts")]
    assert [[j.why for j in judged] for _, judged in found["errors"]] == [["", ""], []] and "logged only" in answer.text
    found = grace.get(page, {"_try": "1", "_try-source": "pilot", "_try-code": 1200, "_try-diag": "x"}).context["tried"]
    assert not found["applied"] and found["errors"][0][1][0].why == "its pattern does not match the text"
    for wrong, says in (
        ({}, "Enter a job"),
        ({"_try-job": 7}, "Job 7 is archived or unknown"),
        ({"_try-code": "x"}, "whole number"),
    ):
        assert says in grace.get(page, {"_try": "1", **wrong}).text
    # The rule in the form counts, not the stored one.
    change = reverse("admin:tasks_app_retryrule_change", args=[limit.pk])
    values = {**rule_form(action="no_retry", parameters=""), "error_source": "pilot", "error_code": 1200, "pattern": ""}
    asked = {"_try": "1", "_try-source": "pilot", "_try-code": 1200}
    found = grace.post(change, {**values, **asked}).context["tried"]
    assert [(j.rule.action, j.edited) for j in found["applied"]] == [("no_retry", True)]
    assert "Only stored rules were tried" in grace.post(change, {**values, **asked, "pattern": "(?=a)b"}).text
    assert RetryRule.objects.get(pk=limit.pk).action == "limit_retry"


def test_a_rule_whose_pattern_the_engine_does_not_take_is_refused(grace):
    answer = grace.post(reverse("admin:tasks_app_retryrule_add"), rule_form(pattern="(?=a)b"))
    assert errors_of(answer)["pattern"] == ["'(?=a)b' looks ahead or behind with (?=, which is not supported."]


def test_shares_are_a_tree_whose_sums_are_checked_and_a_new_value_is_stored_once_its_effect_was_seen(grace):
    GlobalShare.objects.create(name="Production", value=60, working_group="x")
    for name, value, parent in (("Analysis", 40, None), ("MC", 3, "Production"), ("Data", 1, "Production")):
        GlobalShare.objects.create(name=name, value=value, parent_id=parent)
    JobCount.objects.create(site="Q", share="MC", work_queue_id=0, status="running", jobs=9, cores=90)
    JobCount.objects.create(site="Q", share="Analysis", work_queue_id=0, status="activated", jobs=900, cores=900)
    page = reverse("admin:brokerage_app_globalshare_changelist")
    listed = grace.get(page)
    rows = [(row.name, row.level, row.siblings, row.percent, row.actual) for row in listed.context["cl"].result_list]
    assert rows == [
        ("Analysis", 1, 100, 40, 0),
        ("Production", 1, 100, 60, 100),
        ("Data", 2, 4, 15, 0),
        ("MC", 2, 4, 45, 100),
    ]
    assert listed.context["cl"].oddities == [
        (False, "Below Production the values add up to 4, not 100: a share gets its value / 4."),
        (True, "Production has patterns that are never used: only shares without children have tasks."),
    ]
    GlobalShare.objects.filter(parent="Production").update(value=0)
    assert "Below Production all values are 0" in grace.get(page).text
    GlobalShare.objects.filter(pk="MC").update(value=3)
    change, values = reverse("admin:brokerage_app_globalshare_change", args=["Analysis"]), {"value": 140}
    shown = grace.post(change, values)
    found = {one.name: one for one in shown.context["tried"]["effects"]}
    assert (found["Analysis"].percent, found["Analysis"].new_percent, found["MC"].new_percent) == (40, 70, 30)
    assert found["Analysis"].difference > 0 and "Nothing is saved yet. The effect is shown below the form" in shown.text
    assert GlobalShare.objects.get(pk="Analysis").value == 40 and not AuditEntry.objects.exists()
    assert grace.post(change, {**values, "_seen": "140", "_why": "agreed"}).status_code == 302
    entry = AuditEntry.objects.get()
    assert (entry.details, entry.reason) == ({"changed": {"value": [40, 140]}}, "agreed")
    # What is not the value is stored at once; of a share that is new the effect is shown as well.
    assert grace.post(change, {"value": 140, "vo": "atlas"}).status_code == 302
    new = grace.post(reverse("admin:brokerage_app_globalshare_add"), {"name": "Test", "value": 20, "_try": "1"})
    assert {one.name for one in new.context["tried"]["effects"]} == {"Analysis", "Production", "MC", "Data", "Test"}


def test_a_parameter_is_asked_for_as_what_it_is_with_its_default_and_what_sets_it(grace):
    add, page = reverse("admin:brokerage_app_gdpconfig_add"), "admin:brokerage_app_gdpconfig_change"
    asked = grace.get(add, {"component": "taskbrokerage", "key": "INPUT_SIZE_FRACTION"}).text
    assert (
        "a number from 0 to 100" in asked
        and "<strong>10</strong> %" in asked
        and "No row sets the parameter yet" in asked
    )
    assert 'type="number"' in asked and 'max="100"' in asked and '<option value="INPUT_NUM_THRESHOLD">' in asked
    values = {"component": "taskbrokerage", "key": "INPUT_SIZE_FRACTION", "value": "120"}
    assert "INPUT_SIZE_FRACTION is at most 100 %; this is 120" in str(errors_of(grace.post(add, values)))
    assert grace.post(add, {**values, "value": "20", "_why": "tapes are slow"}).status_code == 302
    row = GdpConfig.objects.get(key="INPUT_SIZE_FRACTION")
    assert (row.app, row.type, trail("admin.add")[0].reason) == ("jedi", "float", "tapes are slow")
    assert "Rows that set the parameter" in grace.get(reverse(page, args=[row.pk])).text
    switch = next(p for p in PARAMETERS if p.type == "bool")
    asked = grace.get(add, {"component": switch.component, "key": switch.key}).text
    assert '<option value="true">true</option>' in asked and "true or false" in asked
    assert f"?component=taskbrokerage&amp;key={row.key}" in grace.get("/help/configuration/").text


def test_accounts_and_groups_say_in_words_what_people_may_do(grace):
    user = User.objects.create_user("ada")
    user.groups.set([Group.objects.create(name=name) for name in ("shift", "manager:phys-higgs", "readers")])
    callers.issue_token("laptop", "user", user=user, lifetime=timedelta(days=1))
    shown = grace.get(reverse("admin:auth_user_change", args=[user.pk]))
    assert shown.context["roles"] == ["group manager", "shifter", "user"]
    for words in (
        "run and pause agents",
        "working group phys-higgs",
        "works until it expires",
        "has no access to the admin",
    ):
        assert words in shown.text
    assert "command anybody" not in shown.text
    listed = grace.get(reverse("admin:auth_group_changelist")).text
    for words in ("run and pause agents", "tasks of the working group phys-higgs", "only what is ticked here"):
        assert words in listed
    roles = grace.get(reverse("admin:auth_group_change", args=[Group.objects.get(name="shift").pk])).context["roles"]
    assert {str(role): group for role, group, _ in roles if group} == {"shifter": "shift", "production": "production"}
    assert set(RIGHT_WORDS) == set(Right)
    user.is_active = False
    user.save()
    assert "the account is not active" in grace.get(reverse("admin:auth_user_change", args=[user.pk])).text


def test_plurals_of_the_admin_are_english():
    plurals = [str(model._meta.verbose_name_plural) for model in admin.site._registry]
    assert [name for name in plurals if re.search(r"(ss|eds|[^aeiou]ys)$", name)] == []
