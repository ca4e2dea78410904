"""Secrets of users: stored encrypted, given to nobody but their owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jedisite.models import AuditEntry
from tasks_app.models import UserSecret
from tasks_app.submission.user_secrets import LONGEST_VALUE, MOST_SECRETS, secrets_of, set_secret

pytestmark = pytest.mark.django_db
Api = Callable[..., Client]


def put(client: Client, **body: Any) -> dict[str, Any]:
    said: dict[str, Any] = client.post("/api/v1/creds/set_user_secrets", body, content_type="application/json").json()
    return said


def kept(client: Client, **query: Any) -> Any:
    answer = client.get("/api/v1/creds/get_user_secrets", query)
    assert answer["Cache-Control"] == "no-store"
    return json.loads(answer.json()["data"])


def test_secrets_are_set_listed_and_deleted_by_their_owner_alone(api: Api) -> None:
    ada, eve = api(), api("user", name="eve")
    assert put(ada, key="a", value="grüße") == {"success": True, "message": "OK", "data": None}
    assert put(ada, key="___file___:b", value="eA==")["success"] and put(ada, key="c", value="")["success"]
    assert put(ada, key="a", value="other")["success"] and put(eve, key="a", value="eve's")["success"]
    assert kept(ada) == kept(ada, keys="None") == {"a": "other", "___file___:b": "eA==", "c": ""}
    assert kept(ada, keys=["a", "c", "x"]) == {"a": "other", "c": ""} and kept(eve) == {"a": "eve's"}
    assert secrets_of("eve") == {"a": "eve's"} and secrets_of("bob") == {}
    put(ada, key="a", value=None)
    assert set(kept(ada)) == {"___file___:b", "c"}
    put(ada, key=None, value=None)
    assert (kept(ada), kept(eve)) == ({}, {"a": "eve's"})


def test_secrets_go_with_the_account(api: Api) -> None:
    put(api(), key="a", value="b")
    put(api("user", name="eve"), key="a", value="b")
    User.objects.get(username="ada").delete()
    assert list(UserSecret.objects.values_list("user", flat=True)) == ["eve"]


def test_neither_the_database_nor_the_audit_trail_holds_a_value(api: Api) -> None:
    put(api(), key="password", value="xyzzy")
    assert b"xyzzy" not in bytes(UserSecret.objects.get().value)
    assert "xyzzy" not in str(list(AuditEntry.objects.values()))


def test_what_is_too_long_or_too_many_or_has_no_name_is_refused(
    api: Api, rows_stored: Callable[[], dict[str, int]]
) -> None:
    ada = api()
    for number in range(MOST_SECRETS):
        set_secret("ada", f"s{number}", "x")
    before = rows_stored()
    for body, field in (
        ({"key": "one more", "value": "x"}, "key"),
        ({"key": "", "value": "x"}, "key"),
        ({"key": "k" * 201, "value": "x"}, "key"),
        ({"key": "s0", "value": "x" * (LONGEST_VALUE + 1)}, "value"),
        ({"key": None, "value": "x"}, "key"),
        ({}, "key"),
        ({"key": "s0"}, "value"),
        ({"key": [1], "value": "x"}, "key"),
        ({"key": "a\0b", "value": "x"}, ""),
        ({"key": "a\r\nb", "value": "x"}, "key: 'a\\r\\nb' contains a line feed"),
        ({"key": "a\u202eb", "value": "x"}, "key: 'a\\u202eb' contains"),
    ):
        said = put(ada, **body)
        assert said["success"] is False and field in said["message"], body
    assert rows_stored() == before
    assert put(ada, key="s0", value="y")["success"]


def test_a_site_with_another_key_says_that_secrets_are_to_be_set_again(api: Api, settings: Any) -> None:
    ada = api()
    put(ada, key="a", value="b")
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another key"
    said = ada.get("/api/v1/creds/get_user_secrets").json()
    assert said["success"] is False and "set it again" in said["message"]
    settings.SECRET_KEY_FALLBACKS = [old]
    assert kept(ada) == {"a": "b"}


@pytest.mark.parametrize("name", ["get_proxy", "get_token_key", "get_key_pair", "get_access_token"])
def test_credentials_of_the_site_are_refused_with_a_sentence(api: Api, name: str) -> None:
    said = api("worker").get(f"/api/v1/creds/{name}", {"role": "production"}).json()
    assert (said["success"], said["data"]) == (False, None) and "keeps no" in said["message"]
