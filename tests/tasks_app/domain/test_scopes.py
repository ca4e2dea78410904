"""Who may make datasets in which scopes: one table of names × writers."""

from __future__ import annotations

from typing import Any

import pytest

from jedisite.vocabulary.roles import Caller, Role
from tasks_app.domain.scopes import Writer, longer_accounts, refusal, scope_of, scope_of_user
from tasks_app.params.faults import ParamErrors
from tasks_app.params.made import made_by
from tasks_app.params.schema import parse
from tasks_app.submission.submitting import check

WRITERS = {
    "bob": Writer("bob"),
    "boss": Writer("boss", frozenset({"phys-higgs"})),
    "prod": Writer("prod", production=True),
    "for bob": Writer("bob", production=True),
}
ALL = ("bob", "boss", "prod", "for bob")

NAMES: dict[str, tuple[str, ...]] = {
    # a user's own scope
    "user.bob.x": ("bob", "for bob"),
    "user.bob.x/": ("bob", "for bob"),
    "user.bob:user.bob.x": ("bob", "for bob"),
    "user.boss.x": ("boss",),
    # somebody else's, and what looks like one's own
    "user.ann.x": (),
    "user.ann.x/": (),
    "user.ann:user.ann.x": (),
    "user.bobby.x": (),
    "user.bo.x": (),
    "user.Bob.x": (),
    "user..bob.x": (),
    "user.bob": (),
    "user.bob.": (),
    "user.bob./": (),
    "user.bob/x": (),
    "user.b\u043eb.x": (),  # the second letter is Cyrillic
    "user.ann:user.bob.x": (),
    "user.bob:user.ann.x": (),
    "user:user.bob.x": (),
    "user.bob.y:user.bob.y.x": (),
    "user.bob:user.bob:user.bob.x": (),
    # groups
    "group.phys-higgs.x": ("boss", "prod", "for bob"),
    "group.phys-higgs:group.phys-higgs.x": ("boss", "prod", "for bob"),
    "group.phys-higgs": ("prod", "for bob"),
    "group.phys.x": ("prod", "for bob"),
    "group.phys-higgs2.x": ("prod", "for bob"),
    # productions, and names without a scope
    "mc23_13p6TeV.900001.evgen.EVNT.e1/": ("prod", "for bob"),
    "mc23_13p6TeV:mc23_13p6TeV.900001.x": ("prod", "for bob"),
    "data25.x": ("prod", "for bob"),
    "valid1.x": ("prod", "for bob"),
    "User.bob.x": ("prod", "for bob"),
    "panda.um.user.bob.x": ("prod", "for bob"),
    "panda.um.user.ann.x": ("prod", "for bob"),
    "x": ("prod", "for bob"),
    ":user.bob.x": (),
    "mc23:user.bob.x": (),
    "user.bob:mc23.x": (),
}


@pytest.mark.parametrize("name", NAMES)
def test_who_may_make_a_dataset_of_a_name(name: str) -> None:
    assert tuple(who for who in ALL if refusal(name, WRITERS[who]) is None) == NAMES[name]


def test_a_refusal_says_whose_the_scope_is_and_which_names_one_may_use() -> None:
    assert refusal("user.ann.x", WRITERS["bob"]) == (
        "user.ann.x is in the scope of a user, where only that user, and production on their behalf (userName), may make "
        "datasets. You may use user.bob.*."
    )
    said = refusal("mc23.x", WRITERS["boss"]) or ""
    assert "a scope of productions" in said and said.endswith("You may use user.boss.*, group.phys-higgs.*.")
    said = refusal("user.ann.x", WRITERS["prod"]) or ""
    assert said.endswith("You may use user.prod.* and every name outside user.*.")


@pytest.mark.parametrize(
    ("name", "user", "accounts"),
    [
        ("user.ada.b.hits.root/", "ada", ("ada.b", "ada.b.hits")),
        ("user.ada:user.ada.b.x", "ada", ("ada.b",)),
        ("user.ada.x", "ada", ()),
        ("user.ada.b.x", "ada.b", ()),
        ("group.ada.b.x", "ada", ()),
    ],
)
def test_longer_accounts_whose_names_a_dataset_may_have(name: str, user: str, accounts: tuple[str, ...]) -> None:
    assert longer_accounts(name, user) == accounts


LONG = "user.a-name-that-is-longer-than-"


@pytest.mark.parametrize(
    ("dataset", "owner", "scope"),
    [
        ("user.ada.x/", "", "user.ada"),
        ("user.ada.x", "ada", "user.ada"),
        ("group.phys.x", "ada", "group.phys"),
        ("mc23.x", "ada", "mc23"),
        ("user.a:user.b.x", "", "user.a"),
        ("user", "", "user"),
        ("/", "", "user"),
        # the account ada.b shares no scope with ada, whose names begin alike
        ("user.ada.b.x", "ada.b", "user.ada.b"),
        ("user.ada.b.x", "ada", "user.ada"),
        # what is to be merged lies with what it is merged into
        ("panda.um.user.ada.x", "ada", "user.ada"),
        ("user.ada.x.panda.um", "ada", "user.ada"),
        ("panda.1122123456.000001.lib._000001", "ada", "panda"),
    ],
)
def test_the_scope_of_a_dataset(dataset: str, owner: str, scope: str) -> None:
    assert scope_of(dataset, owner) == scope


def test_long_names_of_accounts_that_begin_alike_have_scopes_of_their_own() -> None:
    one, other = (scope_of_user(f"a-name-that-is-longer-than-{end}") for end in ("mine", "yours"))
    assert len(one) == len(other) == 30 and one != other
    assert scope_of(f"{LONG}mine.x", "a-name-that-is-longer-than-mine") == one
    assert refusal(f"{one}:{LONG}mine.x", Writer("a-name-that-is-longer-than-mine")) is None
    assert refusal(f"{one}:{LONG}yours.x", Writer("a-name-that-is-longer-than-yours")) is not None


def output(dataset: str, kind: str = "output", **more: Any) -> dict[str, Any]:
    ending = "log.tgz" if kind == "log" else "root"
    return {"type": "template", "param_type": kind, "dataset": dataset, "value": f"bob.${{SN}}.{ending}", **more}


def task(**changes: Any) -> dict[str, Any]:
    return {
        "taskName": "user.bob.t",
        "prodSourceLabel": "user",
        "noInput": True,
        "nEvents": 1,
        "nEventsPerJob": 1,
        "log": output("user.bob.log", "log"),
        "jobParameters": [output("user.bob.out")],
        **changes,
    }


A = "user.ann.hits"


def other_log() -> dict[str, Any]:
    return {**output(A, "log"), "value": "merge.${SN}.log.tgz"}


BOB = Caller("bob", frozenset({Role.USER}))
MANAGER = Caller("bob", frozenset({Role.USER, Role.MANAGER}), manages=frozenset({"phys-higgs"}))
PRODUCTION = Caller("bob", frozenset({Role.USER, Role.PRODUCTION}))
ATTACKS: list[tuple[dict[str, Any], list[str]]] = [
    ({"jobParameters": [output(A)]}, ["jobParameters[0].dataset"]),
    ({"jobParameters": [output(f"{A}/")]}, ["jobParameters[0].dataset"]),
    ({"jobParameters": [output(A, transient=True)]}, ["jobParameters[0].dataset"]),
    ({"jobParameters": [output("user.bob.out"), other_log()]}, ["jobParameters[1].dataset"]),
    ({"jobParameters": [output("user.bob.out", container=f"{A}/")]}, ["jobParameters[0].container"]),
    ({"log": output(A, "log")}, ["log.dataset"]),
    ({"log": [output("user.bob.log", "log"), other_log()]}, ["log[1].dataset"]),
    ({"log": output("user.bob.log", "log", container=A)}, ["log.container"]),
    ({"log_merge": other_log()}, ["log_merge.dataset"]),
    (
        {"mergeOutput": True, "mergeSpec": {"jobParameters": "x"}, "jobParameters": [output(A)]},
        ["jobParameters[0].dataset"],
    ),
    (
        {"preproSpec": {"jobParameters": "-p x"}, "jobParameters": [output("%%OUT%%")]},
        ["jobParameters[0].dataset"],
    ),
    ({"jobParameters": [output("mc23.x")]}, ["jobParameters[0].dataset"]),
    ({"jobParameters": [output("group.phys-susy.x")]}, ["jobParameters[0].dataset"]),
    ({"workingGroup": "phys-susy"}, ["workingGroup"]),
    ({"official": True}, ["official"]),
    ({"official": True, "workingGroup": "phys-susy"}, ["workingGroup", "official"]),
]


@pytest.mark.django_db
@pytest.mark.parametrize("who", [BOB, MANAGER])
@pytest.mark.parametrize(("changes", "fields"), ATTACKS)
def test_every_name_that_a_task_makes_is_looked_at(who: Caller, changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(ParamErrors) as found:
        check(task(**changes), who)
    assert [e.field for e in found.value.errors] == fields


@pytest.mark.parametrize(
    ("who", "changes"),
    [
        (BOB, {}),
        (MANAGER, {"workingGroup": "phys-higgs", "official": True, "jobParameters": [output("group.phys-higgs.x/")]}),
        (PRODUCTION, {"workingGroup": "phys-susy", "official": True, "jobParameters": [output("mc23.x")]}),
        (PRODUCTION, {"userName": "ann", "jobParameters": [output(A)], "log": output("user.ann.log", "log")}),
        # Anybody reads anything.
        (
            BOB,
            {"noInput": False, "jobParameters": [{**output(A, "input"), "value": "--in=${IN}"}, output("user.bob.o")]},
        ),
    ],
)
def test_names_of_ones_own_are_taken(who: Caller, changes: dict[str, Any]) -> None:
    assert check(task(**changes), who).caller is who


@pytest.mark.django_db
@pytest.mark.parametrize("who", [BOB, PRODUCTION])
def test_names_are_not_judged_for_an_owner_who_cannot_be(who: Caller) -> None:
    with pytest.raises(ParamErrors) as found:
        check(task(userName="nobody"), who)
    assert [e.field for e in found.value.errors] == ["userName"]
    said = found.value.errors[0].message
    may_not = "You are bob; you need the production right to submit for 'nobody'."
    assert said == (may_not if who is BOB else "There is no user 'nobody'.")


@pytest.mark.django_db
def test_a_token_for_submitting_takes_the_production_right_away() -> None:
    from dataclasses import replace

    from jedisite.vocabulary.roles import Scope

    with pytest.raises(ParamErrors, match="mc23"):
        check(task(jobParameters=[output("mc23.x")]), replace(PRODUCTION, scope=Scope.SUBMIT))


def test_the_rows_that_a_name_stands_for_are_the_dataset_and_the_container() -> None:
    found = list(made_by(parse(task(log=output("user.bob.log", "log", container="user.bob.logs")))))
    assert [made.name for made in found] == ["user.bob.out", "user.bob.log", "user.bob.logs"]
    assert found[2].rows == ("user.bob.logs", "user.bob.logs/")
