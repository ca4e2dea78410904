"""The login of a device, as panda-client goes through it, at the development issuer."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

import jwt
import pytest
from django.contrib.auth.models import Group, User
from django.core.checks import run_checks
from django.test import Client
from django.utils import timezone

from jedisite.identity import callers, dev_keys, device_logins
from jedisite.identity.callers import Right
from jedisite.models import AuditEntry, DeviceLogin

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
OPENER = build_opener(ProxyHandler({}))


@pytest.fixture
def site(settings: Any, tmp_path: Path) -> Any:
    settings.JEDI_DEV_ISSUER, settings.JEDI_HOME = "dev", tmp_path
    settings.JEDI_SERVER_URL = "http://127.0.0.1:8000"
    return settings


def get(url: str, **headers: str) -> Any:
    with OPENER.open(Request(url, headers=headers)) as answer:
        return json.load(answer)


def post(url: str, **form: str) -> tuple[int, Any]:
    """What panda-client sends: a form, over HTTP."""
    try:
        with OPENER.open(Request(url, urlencode(form).encode())) as answer:
            return answer.status, json.load(answer)
    except HTTPError as exc:
        with exc:
            return exc.code, json.load(exc)


def test_a_device_gets_in_as_the_person_who_confirms(
    live_server: Any, site: Any, make_user: Callable[..., User]
) -> None:
    site.JEDI_SERVER_URL = live_server.url
    config = get(f"{live_server.url}/auth/dev_auth_config.json")
    assert set(config) >= {"client_id", "client_secret", "audience", "oidc_config_url"} and config["vo"] == "dev"
    found = get(config["oidc_config_url"])
    scope = "openid profile email offline_access "
    form = {"client_id": config["client_id"], "scope": scope, "audience": config["audience"]}
    status, begun = post(found["device_authorization_endpoint"], **form)
    assert status == 200 and begun["expires_in"] > 0 and begun["interval"] > 0
    redeem = {"client_id": config["client_id"], "grant_type": DEVICE_GRANT, "device_code": begun["device_code"]}
    assert post(found["token_endpoint"], **redeem) == (400, {"error": "authorization_pending"})
    assert post(found["token_endpoint"], **redeem) == (400, {"error": "slow_down"})

    ada = make_user("ada", "production", first_name="Ada", last_name="Lovelace")
    browser = Client(enforce_csrf_checks=True)
    page = begun["verification_uri_complete"].removeprefix(live_server.url)
    assert browser.get(page)["Location"].startswith("/login/?next=")
    browser.force_login(ada)
    shown = browser.get(page)
    assert begun["user_code"] in shown.text and "<strong>ada</strong>" in shown.text
    answer = {"user_code": begun["user_code"], "answer": "allow"}
    assert browser.post(begun["verification_uri"].removeprefix(live_server.url), answer).status_code == 403
    answer["csrfmiddlewaretoken"] = str(shown.context["csrf_token"])
    done = browser.post("/dev-issuer/verify", answer, follow=True)
    assert done.status_code == 200 and "is now logged in" in done.text

    status, given = post(found["token_endpoint"], **redeem)
    assert status == 200 and given["token_type"] == "Bearer"
    assert post(found["token_endpoint"], **redeem) == (400, {"error": "invalid_grant"})
    claims = jwt.decode(given["id_token"], options={"verify_signature": False})
    assert (claims["name"], claims["preferred_username"]) == ("Ada Lovelace", "ada")
    assert claims["groups"] == ["dev", "dev/production"] and claims["iss"] == found["issuer"]
    # Anybody can check it with the published keys.
    jwk = jwt.PyJWKSet.from_dict(get(found["jwks_uri"]))[jwt.get_unverified_header(given["id_token"])["kid"]]
    assert jwt.decode(given["id_token"], jwk, ["ES256"], audience=config["client_id"], issuer=found["issuer"])

    def tasks(token: str, origin: str) -> Any:
        return get(f"{live_server.url}/api/v2/tasks/", Authorization=f"Bearer {token}", Origin=origin)["results"]

    assert tasks(given["id_token"], "dev") == []
    caller = callers.caller_of_token(given["id_token"], "dev.production")
    assert caller is not None and caller.name == "ada" and caller.may(Right.COMMAND_ANY)

    renew = {"client_id": config["client_id"], "client_secret": "", "grant_type": "refresh_token"}
    status, again = post(found["token_endpoint"], refresh_token=given["refresh_token"], **renew)
    assert status == 200 and again["refresh_token"] != given["refresh_token"] and tasks(again["id_token"], "dev") == []
    assert post(found["token_endpoint"], refresh_token=given["refresh_token"], **renew)[1] == {"error": "invalid_grant"}
    User.objects.update(is_active=False)
    status, refused = post(found["token_endpoint"], refresh_token=again["refresh_token"], **renew)
    assert (status, refused) == (400, {"error": "access_denied"})
    assert [e.action for e in AuditEntry.objects.order_by("id")] == ["device.allowed"]
    stored = str(list(DeviceLogin.objects.values())) + str(list(AuditEntry.objects.values()))
    assert not any(secret in stored for secret in (begun["device_code"], given["refresh_token"], given["id_token"]))


@pytest.mark.django_db
def test_a_login_ends_refused_or_too_old(site: Any, make_user: Callable[..., User]) -> None:
    client, eve = Client(), make_user("eve")
    client.force_login(eve)

    def ask(**form: str) -> tuple[int, Any]:
        answer = client.post("/dev-issuer/token", {"client_id": dev_keys.CLIENT, **form})
        return answer.status_code, answer.json()

    begun = client.post("/dev-issuer/device", {"client_id": dev_keys.CLIENT}).json()
    client.post("/dev-issuer/verify", {"user_code": begun["user_code"].lower().replace("-", " "), "answer": "refuse"})
    redeem = {"grant_type": DEVICE_GRANT, "device_code": begun["device_code"]}
    assert ask(**redeem) == (400, {"error": "access_denied"})
    page = client.get("/dev-issuer/verify", {"user_code": begun["user_code"]})
    assert page.status_code == 404 and "No program waits" in page.text
    late = client.post("/dev-issuer/device", {"client_id": dev_keys.CLIENT}).json()
    DeviceLogin.objects.update(expires=timezone.now() - timedelta(seconds=1))
    row = DeviceLogin.objects.get(user_code=late["user_code"])
    assert not device_logins.decide(row.pk, eve, allow=True)
    assert ask(grant_type=DEVICE_GRANT, device_code=late["device_code"]) == (400, {"error": "expired_token"})
    for form in ({}, {"grant_type": "password"}):
        assert ask(**form) == (400, {"error": "unsupported_grant_type"})
    assert ask(client_id="other", **redeem) == (401, {"error": "invalid_client"})
    assert ask(grant_type=DEVICE_GRANT, device_code="\x00") == (400, {"error": "invalid_grant"})
    assert ask(grant_type="refresh_token") == (400, {"error": "invalid_grant"})
    assert client.post("/dev-issuer/device", {"client_id": "x"}).status_code == 401


@pytest.mark.django_db
def test_few_logins_wait_and_old_ones_are_removed(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_logins, "MOST_WAITING", 2)
    form = {"client_id": dev_keys.CLIENT}
    assert [Client().post("/dev-issuer/device", form).status_code for _ in range(3)] == [200, 200, 503]
    DeviceLogin.objects.update(expires=timezone.now() - timedelta(seconds=1))
    assert Client().post("/dev-issuer/device", form).status_code == 200 and DeviceLogin.objects.count() == 1


@pytest.mark.django_db
def test_groups_of_the_site_become_roles_and_nothing_more(site: Any, make_user: Callable[..., User]) -> None:
    ada = make_user("ada")
    for name in ("pilot", "king", "manager:higgs", "manager:dev"):
        ada.groups.add(Group.objects.create(name=name))
    claims = jwt.decode(device_logins.id_token(ada), options={"verify_signature": False})
    assert claims["groups"] == ["dev", "dev/pilot", "higgs/production"]


def test_the_check_of_a_deployment_warns_of_it(site: Any) -> None:
    def warnings() -> set[str | None]:
        return {found.id for found in run_checks(tags=["security"], include_deployment_checks=True)}

    assert "jedisite.W001" in warnings()
    site.JEDI_DEV_ISSUER = ""
    assert "jedisite.W001" not in warnings()


@pytest.mark.django_db
def test_the_issuer_is_there_only_when_it_is_switched_on(site: Any, make_user: Callable[..., User]) -> None:
    ada = make_user("ada")
    token = device_logins.id_token(ada)
    key = site.JEDI_HOME / "dev_issuer_key.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and list(site.JEDI_HOME.iterdir()) == [key]
    client = Client()
    client.force_login(ada)

    def answers() -> list[int]:
        found = [client.get(f"/dev-issuer/{p}") for p in (".well-known/openid-configuration", "keys", "verify")]
        found += [
            client.post("/dev-issuer/device"),
            client.post("/dev-issuer/token"),
            client.get("/auth/dev_auth_config.json"),
        ]
        return [answer.status_code for answer in found]

    assert answers() == [200, 200, 200, 401, 401, 200]
    assert client.get("/auth/dev.pilot_auth_config.json").json()["vo"] == "dev.pilot"
    assert client.get("/auth/cms_auth_config.json").status_code == 404
    for name in ("JEDI_DEV_ISSUER", "JEDI_SERVER_URL"):
        kept, _ = getattr(site, name), setattr(site, name, "")
        assert answers() == [404] * 6
        mine = Client(headers={"authorization": f"Bearer {token}", "origin": "dev"})
        assert mine.get("/api/v2/tasks/").status_code == 401
        setattr(site, name, kept)
