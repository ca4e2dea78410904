"""Tokens of OIDC issuers: which count, what they give, and what happens when an issuer is silent."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from django.contrib.auth.models import User
from django.test import Client
from jwt.algorithms import RSAAlgorithm

from jedisite.identity import callers as identity
from jedisite.identity import oidc_keys
from jedisite.identity.callers import Caller, Right, Role
from jedisite.models import ApiToken, AuditEntry, ForeignIdentity
from tests.jedisite.little_issuer import AUDIENCE, LittleIssuer, ec_key, rsa_key

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v2/tasks/"


@pytest.fixture
def atlas(issuer: LittleIssuer, settings: Any) -> LittleIssuer:
    settings.JEDI_OIDC = {"atlas": issuer.provider(roles=frozenset({Role.PRODUCTION, Role.PILOT}), make_users=True)}
    return issuer


def ask(token: str, origin: str | None = "atlas", address: str = ADDRESS) -> Any:
    headers = {"authorization": f"Bearer {token}", **({"origin": origin} if origin is not None else {})}
    return Client(headers=headers).get(address)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def signed_with_the_public_key(issuer: LittleIssuer) -> str:
    pem = (
        rsa_key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    body = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': 'one'})}.{part(issuer.claims())}"
    digest = hmac.new(pem, body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def unsigned(issuer: LittleIssuer, alg: str = "none") -> str:
    return f"{part({'alg': alg, 'kid': 'one'})}.{part(issuer.claims())}."


def changed_after_signing(issuer: LittleIssuer) -> str:
    header, _, signature = issuer.token().split(".")
    return f"{header}.{part(issuer.claims(preferred_username='root'))}.{signature}"


NOW = time.time
Made = Callable[[LittleIssuer], str]
WRONG: dict[str, tuple[Made, str | None, int, str]] = {
    "expired": (lambda i: i.token(exp=int(NOW()) - 90), "atlas", 401, "has expired"),
    "not yet valid": (lambda i: i.token(nbf=int(NOW()) + 90), "atlas", 401, "not valid yet"),
    "made in the future": (lambda i: i.token(iat=int(NOW()) + 90), "atlas", 401, "not valid yet"),
    "wrong audience": (lambda i: i.token(aud="https://elsewhere.example"), "atlas", 401, "another audience"),
    "no audience": (lambda i: i.token(aud=None), "atlas", 401, "no aud"),
    "wrong issuer": (lambda i: i.token(iss="https://evil.example"), "atlas", 401, "an issuer other than"),
    "issuer with a slash more": (lambda i: i.token(iss=i.url + "/"), "atlas", 401, "an issuer other than"),
    "no expiry": (lambda i: i.token(exp=None), "atlas", 401, "no exp"),
    "no subject": (lambda i: i.token(sub=None), "atlas", 401, "no sub"),
    "empty subject": (lambda i: i.token(sub=""), "atlas", 401, "cannot be stored as a name"),
    "endless subject": (lambda i: i.token(sub="x" * 300), "atlas", 401, "cannot be stored as a name"),
    "unknown key": (lambda i: i.token(kid="two"), "atlas", 401, "a key that its issuer does not have"),
    "key of somebody else": (lambda i: i.token(key=rsa_key(1)), "atlas", 401, "signature of the token is wrong"),
    "changed after signing": (changed_after_signing, "atlas", 401, "signature of the token is wrong"),
    "alg none": (unsigned, "atlas", 401, "algorithm that is not accepted"),
    "alg None": (lambda i: unsigned(i, "None"), "atlas", 401, "algorithm that is not accepted"),
    "HS256 with the public key": (signed_with_the_public_key, "atlas", 401, "algorithm that is not accepted"),
    "another type of key": (
        lambda i: i.token(key=ec_key(), algorithm="ES256"),
        "atlas",
        401,
        "algorithm that is not accepted",
    ),
    "no token at all": (lambda i: "a.b.c", "atlas", 401, "unknown, expired or revoked"),
    "binary": (lambda i: "\xff.\xff.\xff", "atlas", 401, "unknown, expired or revoked"),
    "endless": (lambda i: "x" * 20_000, "atlas", 401, "longer than"),
    "claims that are a list": (lambda i: f"{part({'alg': 'RS256'})}.{part([1])}.x", "atlas", 401, "unknown, expired"),
    "exp of the wrong type": (lambda i: i.token(exp="soon"), "atlas", 401, "malformed"),
    "unknown VO": (lambda i: i.token(), "cms", 401, "'cms' of the Origin header is not configured"),
    "VO in other letters": (lambda i: i.token(), "ATLAS", 401, "not configured"),
    "unknown VO with a role": (lambda i: i.token(), "cms.production", 401, "not configured"),
    "no Origin, other issuer": (lambda i: i.token(iss="https://evil.example"), None, 401, "must name the VO"),
    "role not in groups": (lambda i: i.token(groups=["atlas"]), "atlas.production", 403, "not list its owner"),
    "role of another VO": (lambda i: i.token(groups=["cms/production"]), "atlas:production", 403, "not list its owner"),
    "role within another name": (
        lambda i: i.token(groups=["x/atlas/production", "atlas/production2"]),
        "atlas:production",
        403,
        "not list its owner",
    ),
    "groups that are a text": (
        lambda i: i.token(groups="atlas/production"),
        "atlas.production",
        403,
        "not list its owner",
    ),
    "role that the site does not give": (lambda i: i.token(groups=["atlas/shift"]), "atlas.shift", 403, "get no role"),
    "unknown role": (lambda i: i.token(groups=["atlas/king"]), "atlas.king", 403, "There is no role 'king'"),
    "name with a colon": (lambda i: i.token(preferred_username="pilot:x", sub="a b"), "atlas", 403, "neither a pref"),
    "no name": (lambda i: i.token(preferred_username=["ada"], sub="a|b"), "atlas", 403, "neither a preferred"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_token_that_does_not_hold_is_refused_with_a_sentence(atlas: LittleIssuer, case: str) -> None:
    make, origin, status, words = WRONG[case]
    answer = ask(make(atlas), origin)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert not User.objects.exists() and not identity._known
    plain = ask(make(atlas), origin, "/tasks/")  # a page is no API, and answers in text
    assert plain.status_code == status and words in plain.text


RIGHT: dict[str, tuple[dict[str, Any], str | None, frozenset[Role]]] = {
    "plain": ({}, "atlas", frozenset({Role.USER})),
    "no Origin": ({}, None, frozenset({Role.USER})),
    "a page's Origin": ({}, "https://page.example", frozenset({Role.USER})),
    "one of several audiences": ({"aud": ["x", AUDIENCE]}, "atlas", frozenset({Role.USER})),
    "expired within the leeway": ({"exp": lambda: int(NOW()) - 5}, "atlas", frozenset({Role.USER})),
    "times as texts": ({"exp": lambda: str(int(NOW()) + 600)}, "atlas", frozenset({Role.USER})),
    "no groups": ({"groups": None}, "atlas", frozenset({Role.USER})),
    "production": ({}, "atlas.production", frozenset({Role.USER, Role.PRODUCTION})),
    "production after a colon": ({}, "atlas:production", frozenset({Role.USER, Role.PRODUCTION})),
    "WLCG's groups": (
        {"groups": None, "wlcg.groups": ["/atlas/production"]},
        "atlas.production",
        frozenset({Role.USER, Role.PRODUCTION}),
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_token_that_holds_makes_an_account_once(atlas: LittleIssuer, case: str) -> None:
    given, origin, roles = RIGHT[case]
    changes: dict[str, Any] = {name: value() if callable(value) else value for name, value in given.items()}
    token = atlas.token(**changes)
    assert ask(token, origin).status_code == 200
    assert identity.caller_of_token(token, origin or "") == Caller("ada", roles, vo="atlas")
    assert ask(atlas.token(**changes, jti="2"), origin).status_code == 200
    ada = User.objects.get()
    assert ada.get_full_name() == "Ada Lovelace" and not ada.has_usable_password() and ada.email == ""
    assert not (ada.is_staff or ada.is_superuser)
    assert [e.action for e in AuditEntry.objects.all()] == ["user.make"]
    assert ForeignIdentity.objects.filter(issuer=atlas.url, subject="subject of ada", user=ada).count() == 1


def test_a_pilot_needs_no_account_and_gets_none_of_a_person(atlas: LittleIssuer) -> None:
    caller = identity.caller_of_token(atlas.token(), "atlas.pilot")
    assert caller == Caller("pilot:ada@atlas", frozenset({Role.PILOT}), vo="atlas") and not User.objects.exists()
    robot = atlas.token(preferred_username=None, name=None, sub="robot-7")
    assert identity.caller_of_token(robot, "atlas:pilot").name == "pilot:robot-7@atlas"  # type: ignore[union-attr]
    assert ask(robot, "atlas:pilot").status_code == 403


def test_a_token_made_with_one_of_an_issuer_ends_with_it(atlas: LittleIssuer) -> None:
    for exp in (int(NOW()) + 600, 10**15):
        caller = Client(headers={"authorization": f"Bearer {atlas.token(exp=exp)}"})
        assert caller.post("/api/v2/tokens/", {"name": "child", "days": 300}, "application/json").status_code == 201
    ends = ApiToken.objects.order_by("id").values_list("expires", flat=True)
    assert [round((end.timestamp() - NOW()) / 600) for end in ends] == [1, 300 * 144]


def test_roles_are_kept_apart_though_the_token_is_the_same(atlas: LittleIssuer) -> None:
    token = atlas.token()
    callers = [identity.caller_of_token(token, origin) for origin in ("atlas", "atlas.production", "atlas.pilot")]
    assert [c is not None and c.may(Right.COMMAND_ANY) for c in callers] == [False, True, False]


def test_nobody_gets_at_an_account_by_having_its_name(
    atlas: LittleIssuer, settings: Any, make_user: Callable[..., User]
) -> None:
    # A local account is not taken over, in whatever letters.
    local = make_user("ada", "administrator")
    for name in ("ada", "Ada", "ADA"):
        answer = ask(atlas.token(preferred_username=name))
        assert answer.status_code == 403 and "already has an account named" in answer.text
    assert not ForeignIdentity.objects.exists()
    # Nor is that of somebody whom the issuer gave the name before.
    assert ask(atlas.token(sub="first", preferred_username="eve")).status_code == 200
    assert ask(atlas.token(sub="second", preferred_username="eve")).status_code == 403
    # The person stays the same when the issuer gives another name.
    caller = identity.caller_of_token(atlas.token(sub="first", preferred_username="root"), "atlas")
    assert caller is not None and caller.name == "eve"
    # A subject counts with its own issuer only.
    settings.JEDI_OIDC = {"cms": atlas.provider(vo="cms", issuer=atlas.url + "/cms")}
    other = atlas.token(sub="first", iss=atlas.url + "/cms", preferred_username="eve")
    atlas.discovery = {"issuer": atlas.url + "/cms"}
    assert "has no account" in ask(other, "cms").text
    # An administrator may bind an identity to an account that is there.
    settings.JEDI_OIDC = {"atlas": atlas.provider()}
    assert ask(atlas.token()).status_code == 403
    ForeignIdentity.objects.create(issuer=atlas.url, subject="subject of ada", user=local)
    caller = identity.caller_of_token(atlas.token(jti="after"), "atlas")
    assert caller is not None and caller.name == "ada" and caller.may(Right.OPERATE)


def test_people_without_an_account_are_told_so_where_none_are_made(atlas: LittleIssuer, settings: Any) -> None:
    settings.JEDI_OIDC = {"atlas": atlas.provider()}
    answer = ask(atlas.token())
    assert answer.status_code == 403 and "has no account at this site" in answer.text and not User.objects.exists()


def test_an_account_that_is_switched_off_is_nobodys(atlas: LittleIssuer) -> None:
    assert ask(atlas.token()).status_code == 200
    User.objects.update(is_active=False)
    for origin in ("atlas", "atlas.pilot", "atlas.production"):
        answer = ask(atlas.token(jti=origin), origin)
        assert answer.status_code == 401 and "is disabled" in answer.text


def test_the_name_and_the_address_of_a_new_account_are_checked(atlas: LittleIssuer) -> None:
    long = atlas.token(name="x" * 400 + " " + "y" * 400, email="ada@example.org", email_verified=True)
    assert ask(long).status_code == 200
    ada = User.objects.get()
    assert (len(ada.first_name), len(ada.last_name), ada.email) == (150, 150, "ada@example.org")
    odd = {"sub": "b", "preferred_username": "bob", "name": ["x"], "email": "no address", "email_verified": True}
    assert ask(atlas.token(**odd)).status_code == 200 and User.objects.get(username="bob").email == ""
    assert ask(atlas.token(sub="carl-1", preferred_username="x y", name="a\x00b")).status_code == 200
    assert User.objects.get(username="carl-1").last_name == "ab"


def test_a_new_key_is_found_and_unknown_keys_cost_one_look_a_while(
    atlas: LittleIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("jedisite.identity.oidc_keys.time.monotonic", lambda: now[0])
    assert ask(atlas.token()).status_code == 200 and len(atlas.asked) == 2
    atlas.keys = {"two": (ec_key(), "ES256")}
    for _ in range(3):
        assert ask(atlas.token(kid="two")).status_code == 401
    assert len(atlas.asked) == 2  # the keys were fetched a moment ago
    now[0] += oidc_keys.PAUSE_S
    assert ask(atlas.token(kid="two")).status_code == 200 and len(atlas.asked) == 4
    assert ask(atlas.token(kid="one", jti="withdrawn")).status_code == 401 and len(atlas.asked) == 4
    now[0] += oidc_keys.KEPT_S
    assert ask(atlas.token(kid="two", jti="2")).status_code == 200 and len(atlas.asked) == 6


def test_nobody_waits_for_the_keys_of_a_slow_issuer_but_who_fetches_them(
    issuer: LittleIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("jedisite.identity.oidc_keys.time.monotonic", lambda: now[0])
    keys, provider = oidc_keys.Keys(), issuer.provider()
    known = keys.get(provider, "one")
    now[0] += oidc_keys.KEPT_S
    issuer.door.clear()
    issuer.arrived.clear()
    with ThreadPoolExecutor(1) as others:
        fetched = others.submit(keys.get, provider, "one")
        assert issuer.arrived.wait(20)
        assert keys.get(provider, "one") is known  # a day old, and still good
        with pytest.raises(oidc_keys.IssuerSilentError):
            keys.get(provider, "made-up")
        assert not fetched.done()
        issuer.door.set()
        assert fetched.result(20) is not known


def test_a_silent_issuer_stops_new_keys_only(atlas: LittleIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("jedisite.identity.oidc_keys.time.monotonic", lambda: now[0])
    atlas.silent = True
    for _ in range(3):
        answer = ask(atlas.token())
        assert answer.status_code == 503 and "does not answer" in answer.text
    assert len(atlas.asked) == 1
    atlas.silent = False
    now[0] += oidc_keys.PAUSE_S
    assert ask(atlas.token()).status_code == 200
    atlas.silent = True
    now[0] += oidc_keys.KEPT_S
    assert ask(atlas.token(jti="2")).status_code == 200
    assert ask(atlas.token(kid="new")).status_code == 503
    now[0] += oidc_keys.STALE_S
    assert ask(atlas.token(jti="3")).status_code == 503


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://other.example"},
        {"jwks_uri": "http://elsewhere.example/keys"},
        {"jwks_uri": None},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
def test_keys_come_from_the_issuer_or_not_at_all(atlas: LittleIssuer, discovery: dict[str, Any]) -> None:
    atlas.discovery = discovery
    assert ask(atlas.token()).status_code == 503 and atlas.asked == ["/.well-known/openid-configuration"]


def test_secret_and_broken_keys_of_a_set_are_left_out() -> None:
    private = json.loads(RSAAlgorithm.to_jwk(rsa_key()))
    public = json.loads(RSAAlgorithm.to_jwk(rsa_key().public_key()))
    rows = [
        {**private, "kid": "private"},
        {**public, "kid": "good", "alg": "RS512"},
        {**public, "use": "enc", "kid": "e"},
        {"kty": "oct", "k": "c2Vj", "kid": "oct"},
        {"kty": "RSA", "kid": "empty"},
        {"kty": "EC", "kid": "x"},
        7,
    ]
    found = oidc_keys.keys_of_document({"keys": rows})
    assert {kid: key.algorithms for kid, key in found.items()} == {"good": ("RS512",)}
    with pytest.raises(ValueError):
        oidc_keys.keys_of_document([])


def test_a_token_is_never_trusted_beyond_its_end(atlas: LittleIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    token = atlas.token(exp=int(time.time()) - 58)
    caller = identity.caller_of_token(token, "atlas")
    assert caller is not None
    (until, _), start = identity._known.popitem()[1], time.monotonic()
    assert until - start <= 2
