"""Accounts in the admin. Only administrators hand out rights: staff who may edit accounts cannot raise themselves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as PlainGroupAdmin
from django.contrib.auth.admin import UserAdmin as PlainUserAdmin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from jedisite.admin.base import AuditedAdmin
from jedisite.admin.list_filters import days
from jedisite.admin.tools import ToolAdmin
from jedisite.identity.callers import GROUP_ROLES, MANAGER_OF, MEMBER_OF, caller_of_user
from jedisite.models import ForeignIdentity
from jedisite.vocabulary.roles import RIGHT_WORDS, RIGHTS, Caller, Right, Role

admin.site.unregister(User)
admin.site.unregister(Group)
RAISING = ("is_staff", "is_superuser", "groups", "user_permissions")


def words_of(caller: Caller) -> list[str]:
    """What somebody may do on the pages and by the API, in words."""
    return [words for right, words in RIGHT_WORDS.items() if right is not Right.NOTHING and caller.may(right)]


@admin.register(User)
class UserAdmin(PlainUserAdmin, ToolAdmin):  # type: ignore[misc] # both refine the same class
    tool_template = "admin_parts/account.html"
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login", "date_joined"]
    list_filter = ["is_active", "is_staff", "is_superuser", "groups", days("date_joined"), days("last_login")]
    search_fields = ["username", "first_name", "last_name", "email"]
    ordering = ["username"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = [*super().get_readonly_fields(request, obj), "last_login", "date_joined"]
        return fields if _is_administrator(request) else [*fields, *RAISING]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and _may_touch(request, obj)

    def tool_context(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any]:
        """What the account may do as it is stored, and its tokens."""
        if obj is None:
            return {}
        stored = User.objects.get(pk=obj.pk)
        caller = caller_of_user(stored)
        return {
            "account": stored,
            "roles": sorted(caller.roles),
            "may": words_of(caller),
            "manages": sorted(caller.manages),
            "member_of": sorted(caller.member_of - caller.manages),
            "tokens": stored.api_tokens.order_by("revoked", "-id")[:20],
            "tokens_url": reverse("admin:jedisite_apitoken_changelist"),
        }

    @transaction.atomic
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        return super().user_change_password(request, id, form_url)


class ForeignIdentityForm(forms.ModelForm):
    class Meta:
        model = ForeignIdentity
        fields = ["issuer", "subject", "user"]

    def clean_issuer(self) -> str:
        issuer: str = self.cleaned_data["issuer"]
        if issuer != ForeignIdentity.X509 and "://" not in issuer:
            raise forms.ValidationError(f"Enter the address of an OIDC issuer, or {ForeignIdentity.X509}.")
        return issuer


@admin.register(ForeignIdentity)
class ForeignIdentityAdmin(AuditedAdmin):
    """Who binds a name to an account gives its bearer that account: administrators alone do."""

    form = ForeignIdentityForm
    list_display = ["id", "user", "issuer", "subject", "created"]
    search_fields = ["subject", "user__username"]
    list_select_related = ["user"]
    ordering = ["-id"]
    autocomplete_fields = ["user"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_administrator(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)


@admin.register(Group)
class GroupAdmin(PlainGroupAdmin, ToolAdmin):  # type: ignore[misc] # both refine the same class
    """Groups carry rights (see `jedisite.identity.callers.GROUP_ROLES`): administrators alone change them."""

    tool_template = "admin_parts/roles.html"
    list_display = ["name", "meaning"]
    search_fields = ["name"]
    ordering = ["name"]

    @admin.display(description="its members may")
    def meaning(self, group: Group) -> str:
        if group.name.startswith(MANAGER_OF):
            return f"command the tasks of the working group {group.name.removeprefix(MANAGER_OF)}"
        if group.name.startswith(MEMBER_OF):
            return f"fetch the files that tasks of the working group {group.name.removeprefix(MEMBER_OF)} made"
        role = GROUP_ROLES.get(group.name)
        more = RIGHTS[role] - RIGHTS[Role.USER] if role else ()
        return "; ".join(words for right, words in RIGHT_WORDS.items() if right in more) or "only what is ticked here"

    def tool_context(self, request: HttpRequest, form: Any, obj: Any) -> dict[str, Any]:
        """What each role may do, and by which group people have it."""
        groups = {role: name for name, role in GROUP_ROLES.items()}
        return {
            "roles": [
                (role, groups.get(role, ""), words_of(Caller("", frozenset({role}))))
                for role in Role
                if role != Role.ANONYMOUS
            ]
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_administrator(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return _is_administrator(request)


def _is_administrator(request: HttpRequest) -> bool:
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def _may_touch(request: HttpRequest, obj: Any) -> bool:
    """Nobody but an administrator changes an account that has more rights than a plain one."""
    if obj is None or _is_administrator(request) or obj.pk == request.user.pk:
        return True
    return not (obj.is_superuser or obj.is_staff or obj.groups.exists())
