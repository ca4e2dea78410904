"""Tokens that people make for themselves: on the page, over the API, at the command line."""

from __future__ import annotations

import io
import re
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from brokerage_app.models import Queue
from jedisite.identity import callers, tokens
from jedisite.identity.callers import Caller, Role
from jedisite.models import ApiToken, AuditEntry
from jedisite.vocabulary.roles import Scope

pytestmark = pytest.mark.django_db
WISH = {"name": "<laptop>", "days": "30", "scope": "submit"}


def scope_of(token: str) -> Scope | None:
    callers._known.clear()
    caller = callers.caller_of_token(token)
    return caller.scope if caller else None


def test_a_person_makes_a_token_sees_it_once_and_takes_it_back(make_user: Callable[..., User]) -> None:
    people = Client(enforce_csrf_checks=True)
    people.force_login(make_user("ada"))
    page = people.get("/tokens/")
    assert "You have no token yet" in page.text
    assert people.post("/tokens/", WISH).status_code == 403 and not ApiToken.objects.exists()
    csrf = {"csrfmiddlewaretoken": str(page.context["csrf_token"])}
    made = people.post("/tokens/", {**WISH, **csrf})
    token = re.search(r'id="token"[^>]*>([^<]+)<', made.text)[1]  # type: ignore[index]
    assert scope_of(token) is Scope.SUBMIT and "no-store" in made["Cache-Control"]
    listed = people.get("/tokens/").text
    row = ApiToken.objects.get()
    assert token not in listed and row.prefix in listed and "&lt;laptop&gt;" in listed and "<laptop>" not in listed
    gone = people.post(f"/tokens/{row.pk}/revoke/", csrf, follow=True)
    assert "has been revoked" in gone.text and "revoked" in gone.text and scope_of(token) is None
    people.post(f"/tokens/{row.pk}/revoke/", csrf)
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["token.make", "token.revoke"]
    assert token not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "x" * 101},
        {"name": "\x00"},
        {"name": "a\r\nb"},
        {"days": "0"},
        {"days": "366"},
        {"days": "x"},
        {"days": "9" * 400},
        {"scope": "god"},
        {"scope": ""},
    ],
)
def test_a_bad_wish_makes_no_token_and_says_why(make_user: Callable[..., User], wrong: dict[str, str]) -> None:
    people = Client()
    people.force_login(make_user("ada"))
    answer = people.post("/tokens/", {**WISH, **wrong})
    assert answer.status_code == 200 and "errorlist" in answer.text and not ApiToken.objects.exists()


def test_the_page_is_for_people_and_their_own_tokens(
    make_user: Callable[..., User], make_token: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = make_token(name="eve")
    program = Client(headers={"authorization": f"Bearer {token}"})
    number = ApiToken.objects.get().pk
    assert program.get("/tokens/").status_code == 400 and program.post(f"/tokens/{number}/revoke/").status_code == 400
    people = Client()
    people.force_login(make_user("ada", "administrator"))
    assert people.post(f"/tokens/{number}/revoke/").status_code == 404 and scope_of(token) is Scope.ALL
    assert not re.search(r"\beve\b", people.get("/tokens/").text)
    monkeypatch.setattr(tokens, "MOST_TOKENS", 1)
    assert people.post("/tokens/", WISH).status_code == 200
    assert "You have 1 valid tokens" in people.post("/tokens/", WISH).text and ApiToken.objects.count() == 2


def test_over_the_api_a_token_is_narrowed_and_cannot_widen_itself(make_user: Callable[..., User]) -> None:
    people = Client()
    people.force_login(make_user("ada"))
    narrow = {}
    for scope in Scope:
        made = people.post("/api/v2/tokens/", {"name": scope, "scope": scope}, "application/json")
        assert made.status_code == 201 and made.json()["scope"] == scope
        narrow[scope] = Client(headers={"authorization": f"Bearer {made.json()['token']}"})
    wanted = {"name": "more", "scope": "all"}
    answers = {s: c.post("/api/v2/tokens/", wanted, "application/json").status_code for s, c in narrow.items()}
    assert answers == {Scope.ALL: 201, Scope.SUBMIT: 403, Scope.READ: 403}
    number = ApiToken.objects.earliest("id").pk
    assert narrow[Scope.READ].delete(f"/api/v2/tokens/{number}/").status_code == 403
    answer = people.post("/api/v2/tokens/", {"name": "x", "scope": "god"}, "application/json")
    assert answer.status_code == 422 and [e["field"] for e in answer.json()["errors"]] == ["scope"]


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("token", *words, stdout=out)
    return out.getvalue()


def test_the_command_prints_the_token_alone(make_user: Callable[..., User]) -> None:
    make_user("ada")
    token = run("make", "ada", "--scope", "read", "--days", "3", "--name", "cron").removesuffix("\n")
    assert callers.caller_of_token(token) == Caller("ada", frozenset({Role.USER}), scope=Scope.READ)
    Queue.objects.create(name="SITE_A", site_name="A")
    pilot = run("pilot", "--site", "SITE_A").removesuffix("\n")
    assert callers.caller_of_token(pilot) == Caller("pilot:pilots", frozenset({Role.PILOT}), "SITE_A")
    worker = run("worker").removesuffix("\n")
    assert callers.caller_of_token(worker) == Caller("worker:workers", frozenset({Role.WORKER}))
    lines = run("list").splitlines()
    assert [line.split()[1:3] for line in lines] == [["user", "ada"], ["pilot", "SITE_A"], ["worker", "any"]]
    assert not any(secret in "".join(lines) for secret in (token, pilot, worker))
    number = lines[0].split()[0]
    run("revoke", number)
    assert len(run("list").splitlines()) == 2 and "revoked" in run("list", "ada", "--all")
    assert scope_of(token) is None
    assert [e.actor for e in AuditEntry.objects.all()] == ["manage.py"] * 4


def test_an_ordinary_account_is_made_with_its_first_token() -> None:
    token = run("make", "ada", "--new-account").removesuffix("\n")
    assert callers.caller_of_token(token) == Caller("ada", frozenset({Role.USER}), scope=Scope.ALL)
    assert not User.objects.get(username="ada").has_usable_password()
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["account.make", "token.make"]
    for name, said in (("ada", "already exists"), ("a b", "no account a b was made"), ("", "no account")):
        with pytest.raises(CommandError, match=said):
            run("make", name, "--new-account")
    assert User.objects.count() == ApiToken.objects.count() == 1


def test_a_file_holds_the_token_and_nothing_else(make_user: Callable[..., User], tmp_path: Path) -> None:
    make_user("ada")
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o644)
    assert run("make", "ada", "--file", str(path)) == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and list(tmp_path.iterdir()) == [path]
    assert scope_of(path.read_text()) is Scope.ALL


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("make", "nobody"), "no active user nobody; --new-account makes one"),
        (("list", "adaa"), "Did you mean ada?"),
        (("make", "adaa"), "no active user adaa. Did you mean ada? --new-account makes the account adaa"),
        (("make", "ada", "--days", "0"), "--days must be"),
        (("make", "ada", "--name", "x" * 101), "--name has"),
        (("make", "ada", "--name", "a\nb"), "--name: 'a\\nb' contains a line feed"),
        (("pilot", "--name", "a\u202eb"), "--name: 'a\\u202eb' contains a line feed"),
        (("pilot", "--site", "x" * 129), "--site has"),
        (("pilot", "--site", "site_b"), "--site: There is no queue 'site_b'. Did you mean SITE_A?"),
        (("revoke", "abc"), "'abc' is not the number of a token; `token list` shows the numbers"),
        (("revoke", "999999"), "nothing was revoked"),
        (("make", "ada", "--file", "/nowhere/at/all"), "cannot be written"),
    ],
)
def test_what_the_command_refuses_it_explains(
    make_user: Callable[..., User], words: tuple[str, ...], said: str
) -> None:
    make_user("ada")
    Queue.objects.create(name="SITE_A", site_name="A")
    with pytest.raises(CommandError) as refused:
        run(*words)
    assert said in str(refused.value)
    assert not ApiToken.objects.exists() and not AuditEntry.objects.exists()


def test_a_token_made_with_a_token_ends_with_it(make_token: Callable[..., str]) -> None:
    parent = Client(headers={"authorization": f"Bearer {make_token(days=2)}"})
    assert parent.post("/api/v2/tokens/", {"name": "child", "days": 300}, "application/json").status_code == 201
    first, child = ApiToken.objects.order_by("id")
    assert abs(child.expires - first.expires) < timedelta(seconds=5)


def test_the_form_of_the_admin_has_scopes(make_user: Callable[..., User]) -> None:
    grace = Client()
    grace.force_login(user := make_user("grace", "administrator"))
    wish: dict[str, Any] = {"name": "x", "kind": "user", "user": user.pk, "lifetime_days": 7, "scope": "read"}
    made = grace.post("/admin/jedisite/apitoken/add/", wish).context["token"]
    assert scope_of(made) is Scope.READ
    refused = grace.post("/admin/jedisite/apitoken/add/", {**wish, "kind": "pilot", "user": ""})
    assert refused.context["token"] is None and "Only user tokens have a scope" in refused.text
    refused = grace.post("/admin/jedisite/apitoken/add/", {**wish, "name": "a\r\nb"})
    assert refused.context["token"] is None and "contains a line feed" in refused.text
