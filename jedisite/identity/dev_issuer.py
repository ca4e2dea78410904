"""Logins of devices: where panda-client learns of its issuer, and a small OIDC issuer for trials.

The development issuer answers only while JEDI_DEV_ISSUER names its VO. People of this site confirm logins on a page of
this site; the tokens are then checked as those of any other issuer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from jedisite.identity import dev_keys, device_logins, throttle
from jedisite.identity.callers import Right, bearer, caller_of, needs
from jedisite.identity.oidc import provider_and_role

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
LONGEST_CODE = 200
View = Callable[..., HttpResponse]


def while_on(view: View) -> View:
    """There is no such address unless this site is an issuer."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not dev_keys.is_on():
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


@needs(Right.NOTHING)
@require_safe
def auth_config(request: HttpRequest, vo: str) -> HttpResponse:
    """How panda-client logs somebody of a VO in. A role after the VO, as in the Origin header, is taken for granted."""
    found = provider_and_role(vo)
    if found is None:
        raise Http404
    provider, _ = found
    return _json(
        {
            "client_id": provider.client_id,
            "client_secret": provider.client_secret,
            "audience": provider.audiences[0],
            "oidc_config_url": provider.discovery,
            "vo": vo,
        }
    )


@needs(Right.NOTHING)
@require_safe
@while_on
def discovery(request: HttpRequest) -> HttpResponse:
    """The discovery document."""
    issuer = dev_keys.provider().issuer
    return _json(
        {
            "issuer": issuer,
            "jwks_uri": f"{issuer}/keys",
            "device_authorization_endpoint": f"{issuer}/device",
            "token_endpoint": f"{issuer}/token",
            "grant_types_supported": [DEVICE_GRANT, "refresh_token"],
            "response_types_supported": [],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [dev_keys.ALGORITHM],
            "token_endpoint_auth_methods_supported": ["none"],
        }
    )


@needs(Right.NOTHING)
@require_safe
@while_on
def keys(request: HttpRequest) -> HttpResponse:
    """The key set."""
    return _json({"keys": [dev_keys.public_jwk()]})


@csrf_exempt
@needs(Right.NOTHING)
@require_POST
@while_on
def device(request: HttpRequest) -> HttpResponse:
    """Begin the login of a device."""
    if request.POST.get("client_id") != dev_keys.CLIENT:
        return _fault("invalid_client", 401)
    try:
        throttle.attempt(throttle.NEW_DEVICE, throttle.address_of(request))
    except throttle.TooManyAttempts as exc:
        return _slow_down(exc)
    begun = device_logins.start()
    if begun is None:
        return _fault("temporarily_unavailable", 503)
    code, user_code = begun
    page = f"{dev_keys.provider().issuer}/verify"
    return _json(
        {
            "device_code": code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={user_code}",
            "expires_in": int(device_logins.WAIT.total_seconds()),
            "interval": device_logins.INTERVAL_S,
        }
    )


@csrf_exempt
@needs(Right.NOTHING)
@require_POST
@while_on
def token(request: HttpRequest) -> HttpResponse:
    """The token of a login that a person has confirmed, or a new one for an old login."""
    if request.POST.get("client_id") != dev_keys.CLIENT:
        return _fault("invalid_client", 401)
    grant, address = request.POST.get("grant_type"), throttle.address_of(request)
    try:
        throttle.check(throttle.CODE, address)
    except throttle.TooManyAttempts as exc:
        return _slow_down(exc)
    if grant == DEVICE_GRANT:
        reply = device_logins.redeem(request.POST.get("device_code", ""))
    elif grant == "refresh_token":
        reply = device_logins.renew(request.POST.get("refresh_token", ""))
    else:
        return _fault("unsupported_grant_type", 400)
    if reply.get("error") == "invalid_grant":
        throttle.attempt(throttle.CODE, address)
    return _json(reply, 400 if "error" in reply else 200)


@needs(Right.TOKENS)
@require_http_methods(["GET", "HEAD", "POST"])
@while_on
def verify(request: HttpRequest) -> HttpResponse:
    """The page on which somebody lets a device in."""
    if bearer(request):
        raise BadRequest("People confirm logins in a browser.")
    given = (request.POST.get("user_code") or request.GET.get("user_code", ""))[:LONGEST_CODE]
    who = caller_of(request).name
    if given:
        throttle.check(throttle.CODE, who)
    found = device_logins.waiting(given)
    if given and found is None:
        throttle.attempt(throttle.CODE, who)
    answer = request.POST.get("answer")
    if found is not None and answer in ("allow", "refuse"):
        user = get_object_or_404(User, username=who)
        if device_logins.decide(found.pk, user, allow=answer == "allow"):
            said = (
                "The program is now logged in; you can go back to it."
                if answer == "allow"
                else "The login of the program was refused."
            )
            messages.success(request, said)
            return redirect("device-verify")
    if given and found is None:
        messages.error(
            request, "No program waits with this code: it was mistyped, has been used already, or has expired."
        )
    context = {"given": given, "found": found, "who": who, "here": reverse("device-verify")}
    return render(request, "jedisite/device.html", context, status=404 if given and found is None else 200)


def _json(body: dict[str, Any], status: int = 200) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _slow_down(exc: throttle.TooManyAttempts) -> JsonResponse:
    answer = _json({"error": "slow_down", "error_description": str(exc)}, 429)
    answer.headers["Retry-After"] = str(exc.wait_s)
    return answer


def _fault(code: str, status: int) -> JsonResponse:
    return _json({"error": code}, status)
