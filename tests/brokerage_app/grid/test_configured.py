"""Where the configuration comes from, and how people change it: by the admin and by a command, with a trail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from brokerage_app.grid import configured, configuring
from brokerage_app.grid.configured import configuration
from brokerage_app.models import GdpConfig, GlobalShare, ResourceType, StorageEndpoint, WorkQueue
from jedisite.models import AuditEntry

pytestmark = pytest.mark.django_db


def make(key: str = "MIN_WEIGHT", value: str = "2", **changes: Any) -> GdpConfig:
    values = {"app": "jedi", "component": "jobbroker", "type": "float", **changes}
    return GdpConfig.objects.create(key=key, value=value, **values)


def test_the_table_is_read_once_in_a_while(django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("brokerage_app.grid.configured.time.monotonic", lambda: now[0])
    with django_assert_num_queries(1):
        for _ in range(5):
            assert configuration().get("jobbroker", "MIN_WEIGHT") == 0.0
    GdpConfig.objects.bulk_create(
        [GdpConfig(app="jedi", component="jobbroker", key="MIN_WEIGHT", value="2", type="float")]
    )  # as another process does
    assert configuration().get("jobbroker", "MIN_WEIGHT") == 0.0
    now[0] += configured.CACHE_S
    assert configuration().get("jobbroker", "MIN_WEIGHT") == 2.0


def test_a_change_by_this_process_is_seen_at_once() -> None:
    assert configuration().get("jobbroker", "MIN_WEIGHT") == 0.0
    row = make()
    assert configuration().get("jobbroker", "MIN_WEIGHT") == 2.0
    row.delete()
    assert configuration().get("jobbroker", "MIN_WEIGHT") == 0.0


def test_json_and_vos_come_from_their_columns() -> None:
    make(
        "USER_JOB_PRIO_BOOST_DICTS",
        None,
        app="pandaserver",
        component="dbproxy",
        type="json",
        vo="atlas",
        value_json=[{"n": 1}],
    )  # type: ignore[arg-type]
    assert configuration().get("dbproxy", "USER_JOB_PRIO_BOOST_DICTS", vo="atlas") == [{"n": 1}]
    assert configuration().get("dbproxy", "USER_JOB_PRIO_BOOST_DICTS") is None


@pytest.mark.parametrize("vo", [None, "atlas"])
def test_there_is_one_row_of_a_name_for_a_vo_and_for_all(vo: str | None) -> None:
    make(vo=vo)
    with pytest.raises(IntegrityError):
        make(vo=vo)


def test_a_value_is_set_changed_and_unset_with_a_trail() -> None:
    configuring.set_value("jobbroker", "MIN_WEIGHT_managed", "2", by="ada", reason="too many")
    configuring.set_value("jobbroker", "MIN_WEIGHT_managed", "3", by="ada")
    configuring.set_value("jobbroker", "MIN_WEIGHT_managed", "4", vo="atlas", by="ada")
    for key in ("MIN_WEIGHT_rc_test2", "MIN_WEIGHT_managed_MC 16 simul"):
        with transaction.atomic():
            configuring.set_value("jobbroker", key, "1", by="ada")
            transaction.set_rollback(True)
    assert configuration().get("jobbroker", "MIN_WEIGHT", "managed") == 3.0
    assert configuration().get("jobbroker", "MIN_WEIGHT", "managed", vo="atlas") == 4.0
    assert configuring.unset_value("jobbroker", "MIN_WEIGHT_managed", by="ada")
    assert not configuring.unset_value("jobbroker", "MIN_WEIGHT_managed", by="ada")
    entries = AuditEntry.objects.order_by("id")
    assert [(e.actor, e.action, e.details["changed"]) for e in entries] == [
        ("ada", "config.set", [None, "2"]),
        ("ada", "config.set", ["2", "3"]),
        ("ada", "config.set", [None, "4"]),
        ("ada", "config.unset", ["3", None]),
    ]
    assert entries[0].reason == "too many"


@pytest.mark.parametrize(
    ("names", "value", "sentence"),
    [
        (("jobbroker", "MIN_WAIGHT"), "1", "nearest name is MIN_WEIGHT"),
        (("jobbroker", "MIN_WEIGHT_manged"), "2", r"no task can have the label manged, .* Did you mean managed\?"),
        (("jobbroker", "MIN_WEIGHT_manged_MC 16 simul"), "2", "Did you mean managed"),
        (("jobbroker", "MIN_WEIGHT"), "heavy", "'heavy' as float"),
        (("jobbroker", "MIN_INPUT_COMPLETENESS"), "110", "at most 100 %"),
        (("dbproxy", "USER_JOB_PRIO_BOOST_DICTS"), "[", "not of the type json"),
    ],
)
def test_a_value_that_means_nothing_is_not_stored(names: tuple[str, str], value: str, sentence: str) -> None:
    with pytest.raises((LookupError, ValueError), match=sentence):
        configuring.set_value(*names, value, by="ada")
    with pytest.raises(CommandError, match=sentence):
        call_command("config", "set", *names, value)
    assert not GdpConfig.objects.exists() and not AuditEntry.objects.exists()


@pytest.fixture
def queues() -> None:
    def queue(name: str, **more: Any) -> WorkQueue:
        return WorkQueue.objects.create(name=name, type="managed", vo="lab", **more)

    whole = queue("parts", partition_id=-1)
    queue("left", partition_id=whole.id)
    queue("its own", partition_id=whole.id, function="Resource")
    queue("MC")
    GlobalShare.objects.create(name="Express", value=1)
    ResourceType.objects.create(name="SCORE", position=1)


@pytest.mark.parametrize(
    ("component", "key", "sentence"),
    [
        ("prod_job_throttler", "NQUEUELIMIT_left", "left is part of the partition parts, .* set NQUEUELIMIT_parts"),
        ("prod_job_throttler", "NRUNNINGCAP_left_SCORE", "set NRUNNINGCAP_parts_SCORE instead"),
        ("anal_job_throttler", "NQUEUECAP_left_MCORE*", r"set NQUEUECAP_parts_MCORE\* instead"),
        ("jobgen", "NTASKS_left", "set NTASKS_parts instead"),
        ("watchdog", "MAX_JOB_FAILURE_RATE_TO_PAUSE_managed_left", "set MAX_JOB_FAILURE_RATE_TO_PAUSE_managed_parts"),
        ("jobgen", "NFILES_Expres", "no work queue or share Expres.* Did you mean Express"),
        ("prod_job_throttler", "NQUEUELIMIT_MC_SCOR", "Did you mean MC_SCORE"),
        ("jobgen", "NTASKS_MC_SCORE", "no work queue or share MC_SCORE"),
    ],
)
def test_a_limit_for_a_queue_that_is_not_counted_says_which_to_set(
    queues: None, component: str, key: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value = "0.5" if component == "watchdog" else "100"
    with pytest.raises(CommandError, match=sentence):
        call_command("config", "set", component, key, value)
    assert not GdpConfig.objects.exists()
    make(key, value, component=component, type="float" if component == "watchdog" else "int")
    call_command("config", "list", "--set")
    out, err = capsys.readouterr()
    assert out == "" and f"not in force: {component}.{key}" in err, "one that was set before the queue was changed"


@pytest.mark.parametrize("suffix", ["", "_parts", "_its own", "_MC_SCORE", "_MC_MCORE*", "_Express_SCORE*"])
def test_a_limit_for_a_queue_or_share_that_is_counted_is_taken(queues: None, suffix: str) -> None:
    call_command("config", "set", "prod_job_throttler", f"NQUEUELIMIT{suffix}", "100")
    assert GdpConfig.objects.get().key == f"NQUEUELIMIT{suffix}"


@pytest.fixture
def storages() -> None:
    for name, path, is_tape in (("A_DISK", "/a", False), ("A_TAPE", "/t", True), ("ELSEWHERE", "", True)):
        StorageEndpoint.objects.create(name=name, site_name="A", path=path, is_tape=is_tape)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("LINK_RATE_A_DISK:NOWHERE", "5", "there is no storage NOWHERE of this machine, .*; those are A_DISK, A_TAPE"),
        ("LINK_TRANSFERS_A_DISC:A_TAPE", "5", "no storage A_DISC of this machine, .* Did you mean A_DISK"),
        ("LINK_RATE_A_DISK:ELSEWHERE", "5", "there is no storage ELSEWHERE of this machine"),
        ("LINK_RATE_A_DISK", "5", "a link is source:destination, two storages of this machine; A_DISK is none"),
        ("LINK_RATE_A_DISK:A_DISK", "5", "files are never copied from A_DISK to itself"),
        ("TAPE_DRIVES_A_DISK", "5", "A_DISK is no tape of this machine, .*A_TAPE"),
        ("TAPE_LATENCY_NOWHERE", "5", "NOWHERE is no tape of this machine, .*A_TAPE"),
        ("LINK_TRANSFERS", "0", "1"),
        ("LINK_TRANSFERS_A_DISK:A_TAPE", "0", "1"),
        ("TAPE_DRIVES", "0", "1"),
    ],
)
def test_a_parameter_of_the_mover_is_for_storages_of_this_machine_and_stops_none(
    storages: None, key: str, value: str, sentence: str
) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("config", "set", "mover", key, value)
    assert not GdpConfig.objects.exists()


@pytest.mark.parametrize("key", ["LINK_RATE_A_DISK:A_TAPE", "LINK_TRANSFERS_A_TAPE:A_DISK", "TAPE_DRIVES_A_TAPE"])
def test_a_parameter_of_a_link_or_a_tape_that_is_there_is_taken(storages: None, key: str) -> None:
    call_command("config", "set", "mover", key, "1")
    assert GdpConfig.objects.get().key == key


def test_the_command_sets_lists_and_unsets(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("config", "set", "jobbroker", "NW_ACTIVE", "false", "--vo", "atlas", "--reason", "test")
    make("MIN_WEIGHT_managed", "none")
    capsys.readouterr()
    call_command("config", "list")
    out, err = capsys.readouterr()
    assert "    NW_ACTIVE for atlas = false" in out
    assert "jobbroker.MIN_WEIGHT[_label[_share]]: minimum weight of a queue; 0: no minimum (default 0.0)" in out
    assert "not in force: jobbroker.MIN_WEIGHT_managed: 'none' as float" in err
    call_command("config", "list", "jobbroker", "--set")
    assert len(capsys.readouterr().out.splitlines()) == 2
    call_command("config", "unset", "jobbroker", "NW_ACTIVE", "--vo", "atlas")
    assert configuration().get("jobbroker", "NW_ACTIVE", vo="atlas") is True
    with pytest.raises(CommandError, match="is not set"):
        call_command("config", "unset", "jobbroker", "NW_ACTIVE")
    with pytest.raises(CommandError, match="no component"):
        call_command("config", "list", "jobbrokers")


def test_what_nothing_reads_is_refused_when_it_is_set(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CommandError, match="its parameters are those of the component jumbo_dog"):
        call_command("config", "set", "JumboWatchDog", "JUMBO_MAX_TASKS", "5")
    call_command("config", "set", "prod_job_throttler", "NQUEUECAP", "5")
    assert capsys.readouterr().out == "prod_job_throttler.NQUEUECAP is 5\n"
    with pytest.raises(CommandError, match="NQUEUECAP is a parameter of anal_job_throttler and of prod_job_throttler"):
        call_command("config", "set", "base_job_throttler", "NQUEUECAP", "5")


@pytest.fixture
def grace(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("grace"))
    return client


ADD = "admin:brokerage_app_gdpconfig_add"


def form(**changes: str) -> dict[str, str]:
    values = {"component": "jobbroker", "key": "MIN_WEIGHT_managed", "value": "2", "vo": "", "value_json": "null"}
    return {**values, "description": "", "app": "", "type": "", **changes}


def test_the_admin_adds_and_changes_a_value_with_a_trail(grace: Client) -> None:
    assert grace.post(reverse(ADD), form()).status_code == 302
    row = GdpConfig.objects.get()
    assert (row.app, row.type, row.vo) == ("jedi", "float", None)
    page = reverse("admin:brokerage_app_gdpconfig_change", args=[row.pk])
    text = grace.get(page).content.decode()
    assert "minimum weight of a queue" in text
    assert grace.post(page, form(value="3")).status_code == 302
    assert configuration().get("jobbroker", "MIN_WEIGHT", "managed") == 3.0
    added, changed = AuditEntry.objects.order_by("id")
    assert added.details["values"]["key"] == "MIN_WEIGHT_managed"
    assert changed.details == {"changed": {"value": ["2", "3"]}}


def test_the_admin_takes_a_row_for_each_vo_but_not_two_for_one(grace: Client) -> None:
    assert grace.post(reverse(ADD), form()).status_code == 302
    assert grace.post(reverse(ADD), form(vo="atlas")).status_code == 302
    for vo in ("", "atlas"):
        assert grace.post(reverse(ADD), form(vo=vo)).status_code == 200
    assert GdpConfig.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "field", "sentence"),
    [
        ({"key": "MIN_WEIGHT_"}, "key", "there is no parameter MIN_WEIGHT_"),
        ({"key": "MIN_WAIGHT"}, "key", "nearest name is MIN_WEIGHT"),
        ({"key": "MIN_WEIGHT_manged"}, "key", "Did you mean managed?"),
        ({"component": "jobroker"}, "component", "MIN_WEIGHT_managed is a parameter of jobbroker"),
        ({"value": "2,5"}, "value", "&#x27;2,5&#x27; as float"),
        ({"value": ""}, "value", "not of the type float"),
        ({"value": "-2"}, "value", "at least 0"),
        ({"app": "pandaserver"}, "app", "belongs to jedi"),
        ({"type": "bool", "value": "true"}, "value", "not of the type float"),
        ({"component": "dbproxy", "key": "USER_JOB_PRIO_BOOST_DICTS"}, "value_json", "not of the type json"),
        ({"component": "dbproxy", "key": "USER_JOB_PRIO_BOOST_DICTS", "value_json": "["}, "value_json", "valid JSON"),
    ],
)
def test_the_admin_refuses_what_means_nothing_and_names_the_field(
    grace: Client, changes: dict[str, str], field: str, sentence: str
) -> None:
    answer = grace.post(reverse(ADD), form(**changes))
    assert answer.status_code == 200
    assert field in answer.context["adminform"].errors
    assert sentence in answer.content.decode()
    assert not GdpConfig.objects.exists()


def test_the_admin_takes_json(grace: Client) -> None:
    boosts = [{"name": "ada", "type": "user", "prio": 100, "expire": None}]
    values = form(component="dbproxy", key="USER_JOB_PRIO_BOOST_DICTS", value="", value_json=json.dumps(boosts))
    assert grace.post(reverse(ADD), values).status_code == 302
    assert configuration().get("dbproxy", "USER_JOB_PRIO_BOOST_DICTS") == boosts
