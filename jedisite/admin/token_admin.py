"""API tokens in the admin: made through one form that shows the token once, revoked, and never changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from jedisite.admin.base import ReadOnlyAdmin
from jedisite.admin.list_filters import days
from jedisite.identity import token_sites
from jedisite.identity.callers import issue_token, row_of_token
from jedisite.identity.one_line import check_one_line
from jedisite.models import ApiToken, DeviceLogin, LoginAttempts
from jedisite.vocabulary.roles import Scope
from jedisite.vocabulary.words import plural

LONGEST_DAYS = 366


class TokenForm(forms.Form):
    """What a new token is for. Staff make tokens for themselves; only administrators make the others."""

    name = forms.CharField(
        max_length=100,
        validators=[check_one_line],
        widget=UnfoldAdminTextInputWidget,
        help_text="purpose of the token",
    )
    kind = forms.ChoiceField(
        choices=[(k, k) for k in ApiToken.KINDS],
        widget=UnfoldAdminSelectWidget,
        help_text="user: scripts of a person; pilot: fetches jobs and reports on them; worker: starts pilots",
    )
    user = forms.ModelChoiceField(
        User.objects.filter(is_active=True).order_by("username"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="whose rights a user token has; empty for pilots and workers",
    )
    site = forms.CharField(
        max_length=128,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="the queue that a pilot may serve; empty: any",
    )
    scope = forms.ChoiceField(
        choices=ApiToken.SCOPES,
        initial=Scope.ALL.value,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="what a user's token allows",
    )
    lifetime_days = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_DAYS,
        initial=90,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"validity in days, at most {LONGEST_DAYS}",
    )

    def __init__(self, maker: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.maker = maker
        if not maker.is_superuser:
            self.fields["user"].queryset = User.objects.filter(pk=maker.pk)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or {}
        kind, user = values.get("kind"), values.get("user")
        if kind == "user" and user is None:
            self.add_error("user", "A user token needs the user whose rights it has.")
        if kind != "user" and user is not None:
            self.add_error("user", "Only user tokens belong to a user.")
        if kind != "user" and values.get("scope") not in ("", Scope.ALL):
            self.add_error("scope", "Only user tokens have a scope.")
        if kind != "pilot" and values.get("site"):
            self.add_error("site", "Only pilot tokens belong to a queue.")
        elif fault := token_sites.site_fault(values.get("site") or ""):
            self.add_error("site", fault)
        if not self.maker.is_superuser and (kind != "user" or user != self.maker):
            self.add_error(None, "Only administrators make tokens for others, for pilots and for workers.")
        return values


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ["name", "kind", "user", "site", "scope", "prefix", "created", "expires", "last_used", "revoked"]
    list_filter = ["kind", "scope", "revoked", days("created"), days("expires")]
    search_fields = ["name", "prefix", "user__username", "site"]
    list_select_related = ["user"]
    ordering = ["-id"]
    actions = ["revoke"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        codename = f"{self.opts.app_label}.add_{self.opts.model_name}"
        return bool(request.user.has_perm(codename))

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        codename = f"{self.opts.app_label}.change_{self.opts.model_name}"
        return bool(request.user.has_perm(codename))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form; then, once, the token itself. It is in no message, cookie or log."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = TokenForm(request.user, request.POST if request.method == "POST" else None)
        token = self._issue(request, form.cleaned_data) if form.is_valid() else None
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "New token" if token else "Make a token",
            "form": form,
            "token": token,
        }
        return render(request, "admin_parts/token.html", context)

    @transaction.atomic
    def _issue(self, request: HttpRequest, values: dict[str, Any]) -> str:
        token = issue_token(
            values["name"],
            values["kind"],
            user=values["user"],
            site=values["site"],
            scope=Scope(values["scope"] or Scope.ALL),
            lifetime=timedelta(days=values["lifetime_days"]),
        )
        made = row_of_token(token)
        assert made is not None
        details = {"kind": made.kind, "user": str(made.user or ""), "site": made.site, "scope": made.scope}
        details["days"] = values["lifetime_days"]
        self.record(request, "token.issue", made, details, reason=made.name)
        return token

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Tokens are of no use from now on; processes that know one forget it within seconds."""
        tokens = list(queryset.filter(revoked=False).order_by("pk").select_for_update(of=("self",)))
        ApiToken.objects.filter(pk__in=[t.pk for t in tokens]).update(revoked=True)
        for token in tokens:
            self.record(request, "token.revoke", token, reason=token.name)
        messages.success(request, f"{plural(len(tokens), 'token was', 'tokens were')} revoked.")


@admin.register(DeviceLogin)
class DeviceLoginAdmin(ReadOnlyAdmin):
    list_display = ["id", "user_code", "status", "user", "created", "expires", "last_asked"]
    list_filter = ["status", days("created")]
    search_fields = ["user_code", "user__username"]
    list_select_related = ["user"]
    ordering = ["-id"]


@admin.register(LoginAttempts)
class LoginAttemptsAdmin(ReadOnlyAdmin):
    """How many attempts to log in have failed, by hashes of accounts and addresses: whether somebody guesses now."""

    list_display = ["key", "failures", "free_at", "expires"]
    search_fields = ["key__exact"]
    search_help_text = "The full key."
    ordering = ["-expires", "key"]
