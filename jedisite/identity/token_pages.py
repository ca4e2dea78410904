"""The page on which people make, list and revoke tokens for their scripts."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from jedisite.identity import tokens
from jedisite.identity.callers import Right, bearer, caller_of, needs
from jedisite.identity.one_line import check_one_line
from jedisite.models import ApiToken
from jedisite.vocabulary.roles import SCOPE_WORDS, Scope

SHOWN = 200
"""Rows of the list; older ones have long expired."""


class NewTokenForm(forms.Form):
    """Purpose, scope and lifetime of the new token."""

    name = forms.CharField(max_length=ApiToken.LONGEST_NAME, validators=[check_one_line], label="What it is for")
    scope = forms.ChoiceField(
        choices=[(scope.value, words.capitalize()) for scope, words in SCOPE_WORDS.items()], label="It may"
    )
    days = forms.IntegerField(
        min_value=1, max_value=tokens.LONGEST_DAYS, initial=tokens.USUAL_DAYS, label="Valid for (days)"
    )


@never_cache
@needs(Right.TOKENS)
@require_http_methods(["GET", "HEAD", "POST"])
def own_tokens(request: HttpRequest) -> HttpResponse:
    """The list and the form; then, once, the token itself. It is in no message, cookie or log."""
    _only_people(request)
    who, made = caller_of(request).name, None
    form = NewTokenForm(request.POST if request.method == "POST" else None, initial={"scope": Scope.ALL.value})
    if form.is_valid():
        given = form.cleaned_data
        try:
            made, _ = tokens.make(who, given["name"], days=given["days"], scope=Scope(given["scope"]), by=who)
        except tokens.NoTokenError as exc:
            form.add_error(None, str(exc))
        else:
            form = NewTokenForm(initial={"scope": Scope.ALL.value})
    now = timezone.now()
    context = {
        "section": "tokens",
        "rows": [(row, state_of(row), SCOPE_WORDS[Scope(row.scope)]) for row in tokens.of_user(who)[:SHOWN]],
        "form": form,
        "made": made,
        "now": now,
    }
    return render(request, "jedisite/tokens.html", context)


@needs(Right.TOKENS)
@require_POST
def revoke_own(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke one's own token."""
    _only_people(request)
    who = caller_of(request).name
    row = get_object_or_404(tokens.of_user(who), pk=token_id)
    if not row.revoked:
        tokens.revoke(row, by=who)
    messages.success(request, f"The token {row.name} has been revoked.")
    return redirect("tokens")


def state_of(row: ApiToken) -> str:
    """revoked, expired or valid."""
    if row.revoked:
        return "revoked"
    return "expired" if row.expires <= timezone.now() else "valid"


def _only_people(request: HttpRequest) -> None:
    if bearer(request):
        raise BadRequest("This page is for people in a browser; programs use /api/v2/tokens/.")
