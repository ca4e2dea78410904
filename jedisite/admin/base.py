"""What the admin's pages have in common: every change by a person is audited, tables of the machinery cannot be changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import quote
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from unfold.admin import ModelAdmin

from jedisite import audit
from jedisite.admin.forms import PlainJSONField
from jedisite.admin.list_filters import exact_value, parameters_of
from jedisite.admin.list_paging import EstimatingPaginator, FixedOrderChangeList
from jedisite.identity.callers import Caller, caller_of_user
from jedisite.identity.one_line import check_one_line
from jedisite.vocabulary.words import on_one_line

SECRET = frozenset({"password", "digest", "refresh_digest", "secret_hash", "webhook"})
"""Columns whose values never go into the audit trail."""
WHY = "_why"
"""The field below each form for a reason, which goes into the audit trail with the change."""
LONGEST_WHY = 500
LONGEST_SHOWN = 50
LINES = 3
"""Height of a field for a long text; people pull it larger where they need to."""


def plain(value: Any) -> Any:
    """A value of a column as JSON takes it."""
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder, default=str))


def actor_of(request: HttpRequest) -> str:
    """The name under which a person's changes are written down."""
    return str(request.user.get_username())[:128]


def caller_behind(request: HttpRequest) -> Caller:
    """Rights of the person who is logged in, looked up once a request. Tokens count for nothing in the admin."""
    known: Caller | None = getattr(request, "_admin_caller", None)
    if known is None:
        known = caller_of_user(request.user)
        request._admin_caller = known  # type: ignore[attr-defined]
    return known


def values_of(obj: models.Model, names: Iterable[str]) -> dict[str, Any]:
    """Values of some columns and many-to-many relations, fit for JSON; secrets are only named."""
    values: dict[str, Any] = {}
    for name in names:
        field = obj._meta.get_field(name)
        if name in SECRET:
            values[name] = "(secret)"
        elif field.many_to_many:
            values[name] = sorted(str(other) for other in getattr(obj, name).all()) if obj.pk else []
        else:
            values[name] = plain(field.value_from_object(obj))  # type: ignore[union-attr]
    return values


class AuditedAdmin(ModelAdmin):
    """Rows that people may change. Who changed what from which value to which is recorded in the same transaction.

    Only the changed columns are written, so that a form that was open for long undoes nothing that happened meanwhile.
    The primary key of a row that exists cannot be changed: that would make a second row.
    """

    list_filter_submit = True
    list_per_page = 50
    actions_on_top = True
    show_full_result_count = False
    paginator = EstimatingPaginator
    show_facets = admin.ShowFacets.NEVER
    change_form_after_template = "admin_parts/below_form.html"
    tool_template: str | None = None
    """What stands between the form and the field for a reason."""
    help_texts: dict[str, str] = {}

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **{"help_texts": self.help_texts, **kwargs})

    def formfield_for_dbfield(self, db_field: models.Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        if isinstance(db_field, models.JSONField):
            kwargs.setdefault("form_class", PlainJSONField)
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, forms.Textarea):
            field.widget.attrs["rows"] = LINES
        elif isinstance(field, forms.CharField) and isinstance(field.widget, forms.TextInput):
            field.validators.append(check_one_line)
        return field

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        fields = list(super().get_readonly_fields(request, obj))
        key = self.opts.pk
        if obj is not None and key is not None and key.editable and key.name not in fields:
            fields.append(key.name)
        return fields

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        return None if "\x00" in object_id else super().get_object(request, object_id, from_field)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        changed = [name for name in form.changed_data if _is_field(obj, name)]
        if not change:
            obj.save(force_insert=True)
            return
        before = type(obj)._base_manager.get(pk=obj.pk)
        request._admin_before = values_of(before, changed)  # type: ignore[attr-defined]
        columns = [name for name in changed if not obj._meta.get_field(name).many_to_many]
        if columns:
            automatic = [f.name for f in obj._meta.concrete_fields if getattr(f, "auto_now", False)]
            obj.save(update_fields=columns + automatic)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        names = [f.name for f in obj._meta.concrete_fields if f.editable] + [f.name for f in obj._meta.many_to_many]
        self.record(request, "admin.add", obj, {"values": values_of(obj, names)})
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        before = request.__dict__.pop("_admin_before", None)
        if before is None:
            self.record(request, "admin.change", obj, {"note": plain(message)})
        else:
            after = values_of(obj, before)
            changed = {n: [before[n], after[n]] for n in before if before[n] != after[n] or n in SECRET}
            if changed:
                self.record(request, "admin.change", obj, {"changed": changed})
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for obj in queryset:
            names = [f.name for f in obj._meta.concrete_fields]
            self.record(request, "admin.delete", obj, {"values": values_of(obj, names)})
        return super().log_deletions(request, queryset)

    def record(
        self, request: HttpRequest, action: str, obj: Any, details: dict[str, Any] | None = None, reason: str = ""
    ) -> None:
        """Write one line of the audit trail in the name of the person who made this request, with the reason given there."""
        reason = reason or on_one_line(request.POST.get(WHY, "").replace("\x00", ""))[:LONGEST_WHY]
        kind, key = str(self.opts.model_name)[:32], str(obj.pk)[:64]
        audit.record(actor_of(request), action, kind, key, reason=reason, details=details)

    @transaction.atomic
    def response_action(self, request: HttpRequest, queryset: Any) -> HttpResponse | None:
        """An action and its lines in the audit trail are one transaction."""
        key = self.opts.pk
        if key is not None:
            wrong = [one for one in request.POST.getlist(ACTION_CHECKBOX_NAME) if exact_value(key, one) is None]
            if wrong:
                messages.error(request, f"{wrong[0][:LONGEST_SHOWN]!r} is no {self.opts.verbose_name} of this list.")
                return None
        return super().response_action(request, queryset)


def _is_field(obj: models.Model, name: str) -> bool:
    return any(f.name == name for f in obj._meta.get_fields() if not f.auto_created)


class ReadOnlyAdmin(AuditedAdmin):
    """Rows that only agents, moves and the API write. People look at them. Lists do not read `long_columns`."""

    long_columns: tuple[str, ...] = ()

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).defer(*self.long_columns)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LargeTableAdmin(ReadOnlyAdmin):
    """A table of millions of rows: an index answers every list, search and filter of it.

    `search_fields` are columns with an index (`name__exact`); the first one that holds the searched value narrows the
    list. A last one without a lookup is searched for the text as a part of its values; it suits middle-sized tables.
    `ordering` follows an index. `ordering_within` gives the order for a list that is narrowed by a column, where
    another index then fits: {parameter of a filter or searched column: ordering}.
    `key_fields` are set where the id alone has no index: the address of a row's page then names all of them.
    """

    list_per_page = 100
    sortable_by = ()
    list_filter: Sequence[Any] = ()
    ordering_within: dict[str, tuple[str, ...]] = {}
    key_fields: tuple[str, ...] = ()

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> Any:
        return FixedOrderChangeList

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Only what the filters read: any other column in the address would walk the whole table."""
        return lookup in parameters_of(self.list_filter)

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        for parameter, ordering in self.ordering_within.items():
            if request.GET.get(parameter):
                return ordering
        return tuple(str(name) for name in self.ordering or ())

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        if not search_term.strip():
            return queryset, False
        for lookup in self.search_fields:
            name = str(lookup).removesuffix("__exact")
            if name == lookup:
                return queryset.filter(**{f"{name}__icontains": search_term.strip()}), False
            value = exact_value(self.opts.get_field(name), search_term)
            if value is None or not self.model._base_manager.filter(**{name: value}).exists():
                continue
            found = queryset.filter(**{name: value})
            return (found.order_by(*self.ordering_within[name]) if name in self.ordering_within else found), False
        return queryset.none(), False

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        if not self.key_fields:
            return super().get_object(request, object_id, from_field)
        parts = object_id.split("-")
        if len(parts) != len(self.key_fields) or not all(p.isascii() and p.isdecimal() for p in parts):
            return None
        return self.get_queryset(request).filter(**dict(zip(self.key_fields, map(int, parts), strict=True))).first()

    def url_of(self, obj: Any) -> str:
        """Address of a row's page."""
        key = "-".join(str(getattr(obj, name)) for name in self.key_fields) if self.key_fields else obj.pk
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[quote(key)])
