"""PanDA's v1 calls on users' secrets for payloads, and on credentials that this site does not keep."""

from __future__ import annotations

import json

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes

from jedisite.identity.callers import Right
from jedisite.vocabulary.words import plural
from tasks_app.api.panda.call_params import Listed, Params, Text
from tasks_app.api.panda.calls import Ask, PandaView, call
from tasks_app.api.panda.wire import envelope, refused
from tasks_app.params.faults import shown
from tasks_app.submission.user_secrets import (
    LONGEST_VALUE,
    SecretRefusedError,
    UnreadableSecretError,
    delete_secrets,
    secrets_of,
    set_secret,
)


class SetParams(Params):
    key = Text(allow_null=True, help_text="name of the secret; null deletes all secrets of the caller")
    value = Text(allow_null=True, max_length=LONGEST_VALUE, help_text="null deletes the secret")


@call("creds/set_user_secrets", "POST", Right.SUBMIT, SetParams, data=OpenApiTypes.STR)
def set_user_secrets(ask: Ask) -> HttpResponse:
    """Store or delete one's own secret. Jobs of tasks with useSecrets get the secrets in a file."""
    key, value = ask.given["key"], ask.given["value"]
    if key is None and value is not None:
        return refused("key: the name of the secret is missing")
    if value is None:
        count = delete_secrets(ask.caller.name, key)
        if not count:
            return refused("you have no secret" if key is None else f"you have no secret {shown(key)}")
        says = f"{plural(count, 'secret is', 'secrets are')} deleted"
        return envelope(says, message=says)  # its clients print the data
    try:
        set_secret(ask.caller.name, key or "", value)
    except SecretRefusedError as exc:
        return refused(str(exc))
    return envelope(message="OK")


class GetParams(Params):
    keys = Listed(child=Text(), required=False, allow_null=True, max_length=100, help_text="names; all when absent")


@call("creds/get_user_secrets", "GET", Right.SUBMIT, GetParams, data=OpenApiTypes.STR)
def get_user_secrets(ask: Ask) -> HttpResponse:
    """One's own secrets: a JSON object as a text."""
    try:
        found = secrets_of(ask.caller.name, ask.given.get("keys"))
    except UnreadableSecretError as exc:
        return refused(str(exc))
    answer = envelope(json.dumps(found))
    answer["Cache-Control"] = "no-store"
    return answer


def _none_here(address: str, right: Right, what: str, method: str = "GET") -> type[PandaView]:
    """A call for a credential of the site, which it has none of."""

    def refuse(ask: Ask) -> HttpResponse:
        return refused(f"this site keeps no {what}")

    refuse.__doc__ = f"This site keeps no {what}: always refused."
    return call(address, method, right, data=OpenApiTypes.NONE)(refuse)


get_proxy = _none_here("creds/get_proxy", Right.SITE_DATA, "X.509 proxies: its pilots and workers come with tokens")
get_token_key = _none_here("creds/get_token_key", Right.SITE_DATA, "token keys")
get_key_pair = _none_here("creds/get_key_pair", Right.SITE_DATA, "pairs of keys")
get_access_token = _none_here("creds/get_access_token", Right.SITE_DATA, "access tokens for others")
