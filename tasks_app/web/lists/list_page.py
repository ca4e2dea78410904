"""One list page: the filters, columns, order and page that its address says, over the API's own list of the same thing.

The address is the state. What is shown is what the API sends for the same parameters, and what the exports hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request

from jedisite.identity.callers import Caller, caller_of
from jedisite.web.columns import COLUMNS, Column
from jedisite.web.paging import CURSOR, MOST_COMPUTED, ORDERING, PAGE_SIZE, KeysetPagination, Rows
from jedisite.web.problems import InvalidFields
from tasks_app.domain import words
from tasks_app.models import SavedView
from tasks_app.web.lists import cells, facets, misspelt
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import Counted
from tasks_app.web.lists.listing import (
    DENSITY,
    OF_FRAME,
    PICKED,
    SWITCHES,
    VIEW,
    Chip,
    Head,
    Input,
    Listing,
    Shown,
    list_address,
)

LONGEST_VALUE = 1024
MOST_VIEWS = 24
MOST_GONE = 5
KINDS_OF_INPUT = {"DecimalField": "number", "NullBooleanField": "flag", "MomentField": "moment"}


class _Asked:
    """What the paginator of the API reads of a request."""

    def __init__(self, request: HttpRequest, given: Mapping[str, str]) -> None:
        self.query_params = given
        self._request = Request(request)

    def build_absolute_uri(self) -> str:
        return self._request.get_full_path()


def show(
    request: HttpRequest,
    listing: Listing,
    queryset: Rows | None = None,
    *,
    more: Callable[[Rows], Mapping[str, Any]] | None = None,
    fixed: Mapping[str, str] | None = None,
    api_args: Sequence[Any] = (),
    **context: Any,
) -> HttpResponse:
    """The page of a list. `queryset` narrows what is listed (a tab of one task's jobs); `more` adds to the template's
    context from the filtered rows; `fixed` are parameters that the export needs for that narrower list, `api_args` the
    parts of its address.

    Faults of the address are said on the page, and what is left of it is shown.
    """
    views = _views_of(listing, caller_of(request)) if listing.has_views else []
    better = _canonical(request, listing, views)
    if better is not None:
        return redirect(better)
    found = Found(request, listing, queryset, dict(fixed or {}), api_args, views)
    context = {**found.context(), **(more(found.rows) if more else {}), **context}
    return render(request, listing.template, context)


def _views_of(listing: Listing, caller: Caller) -> list[SavedView]:
    """Saved views of a list: the caller's own ones, then those that all see. One query."""
    own = SavedView.objects.filter(owner=caller.name, page=listing.section)
    shared = SavedView.objects.filter(page=listing.section, shared=True)
    return sorted(own | shared, key=lambda view: (view.owner != caller.name, view.name))


def _canonical(request: HttpRequest, listing: Listing, views: Sequence[SavedView]) -> str | None:
    """The address to go to instead: forms send empty fields and a column at a time; a usual view may be set."""
    given = request.GET
    if not given:
        who = caller_of(request).name
        usual = next((view for view in views if view.is_usual and view.owner == who), None)
        if usual and usual.query:
            return f"{request.path}?{usual.query}"
    if listing.preset and OF_FRAME.issuperset(given):
        return f"{request.path}?{urlencode([*given.items(), *listing.preset.items()], safe=',')}"
    picked = given.getlist(PICKED)
    if not picked and all(value != "" for value in given.values()):
        return None
    kept = [(name, value) for name, value in given.items() if value != "" and name not in (PICKED, COLUMNS)]
    chosen = ",".join(picked) if picked else given.get(COLUMNS, "")
    if picked == [column.name for column in listing.columns.usual]:
        chosen = ""
    if chosen:
        kept.append((COLUMNS, chosen))
    return list_address(request.path, listing, {name: str(value) for name, value in kept})


class Found:
    """What a list page shows, found step by step; `context` is what its template needs."""

    def __init__(
        self,
        request: HttpRequest,
        listing: Listing,
        queryset: Rows | None,
        fixed: dict[str, str],
        api_args: Sequence[Any] = (),
        saved: Sequence[SavedView] = (),
    ) -> None:
        self.saved = saved
        self.request, self.listing, self.fixed, self.api_args = request, listing, fixed, api_args
        self.now = timezone.now()
        self.faults: list[str] = []
        self.given = {name: str(value).replace("\x00", "")[:LONGEST_VALUE] for name, value in request.GET.items()}
        every = listing.view.queryset.all() if queryset is None else queryset
        self.filters = listing.view.filterset_class(self.given, queryset=every)
        others = (*SWITCHES, *getattr(listing.view, "switches", ()))
        self.unknown = misspelt.faults_of(request.GET, listing.filters, others)
        self.faults += self.unknown.values()
        self.is_valid = self.filters.is_valid() and not self.unknown
        for name, errors in self.filters.form.errors.items():
            self.faults += [f"{name}: {error}" for error in errors]
        self.rows: Rows = self.filters.qs if self.is_valid else every.none()
        self.chosen = self._chosen()
        # Rows of one task or dataset; the archive of jobs is fixed, too, and whole.
        narrowed = (bool(api_args) or "task" in fixed) and not listing.is_in_key_order
        self.counted: Counted = facets.count(self.rows, listing.facets, narrowed=narrowed)
        self.names = self._names()
        self.page_rows = self._page()

    def _names(self) -> dict[str, Mapping[str, str]]:
        """What people call the values of a filter, for facets that count keys. One query for each of these."""
        listed = {facet.of.parameter: [value for value, _ in facet.values] for facet in self.counted.facets}
        return {
            of.parameter: of.names([*listed.get(of.parameter, ()), *self.given.get(of.parameter, "").split(",")])
            for of in self.listing.facets
            if of.names is not None and (of.parameter in listed or of.parameter in self.given)
        }

    def _named(self, parameter: str, value: str) -> str:
        return self.names.get(parameter, {}).get(value, value)

    def _chosen(self) -> list[Column]:
        known, unknown = self.listing.columns.named(self.given.get(COLUMNS, ""))
        if known and unknown:
            # A saved view may name a column that there is no more: it keeps the others, also when it is saved again.
            self.given[COLUMNS] = ",".join(known)
            gone = ", ".join(repr(name[:64]) for name in unknown[:MOST_GONE])
            self.faults.append(
                f"There is no column {gone}{' …' if len(unknown) > MOST_GONE else ''}; the others are shown."
            )
        try:
            text = self.given.get(COLUMNS, "")
            return self.listing.columns.choose(text) if text else self.listing.columns.usual
        except InvalidFields as exc:
            self.faults += [error["message"] for error in exc.errors]
            return self.listing.columns.usual

    def _page(self) -> list[dict[str, Any]]:
        paginator: KeysetPagination = self.listing.view.pagination_class()
        self.paginator = paginator
        also = [name for column in self.chosen for name in self._cell(column).also] + [self.listing.columns.key]
        by_name = self.listing.columns.by_name
        self.read = list(
            {c.name: c for c in [*self.chosen, *(by_name[name] for name in also if name in by_name)]}.values()
        )
        for given in (self.given, {k: v for k, v in self.given.items() if k not in (CURSOR, PAGE_SIZE, ORDERING)}):
            if self.listing.usual_ordering and ORDERING not in given:
                given = {**given, ORDERING: self.listing.usual_ordering}
            asked = _Asked(self.request, given)
            try:
                self.ordering, order = paginator.order_of(self.rows, asked, self.listing.view)
                needed = self.listing.columns.needed(self.read, order.field.name)
                found = paginator.paginate_queryset(self.rows.values(*needed), asked, self.listing.view)
                return self.listing.columns.rows(found, self.read)
            except InvalidFields as exc:
                self.faults += [error["message"] for error in exc.errors]
        raise AssertionError("the first page in the usual order is always there")

    def _cell(self, column: Column) -> Cell:
        known = self.listing.cells.get(column.name)
        return known or Cell(lambda row, now: cells.shown(column.kind, row[column.name], now))

    def address(self, /, **changes: str | None) -> str:
        """This page's address with parameters changed; None takes one away. The page of the list starts anew."""
        kept = {name: value for name, value in self.given.items() if name not in (CURSOR, VIEW)}
        for name, value in changes.items():
            kept.pop(name, None)
            if value is not None:
                kept[name] = value
        return list_address(self.request.path, self.listing, kept)

    @property
    def active(self) -> dict[str, str]:
        """The filters that are on, with those that there are not: so that they can be taken away, and no act leaves them out."""
        return {name: self.given[name] for name in (*self.listing.filters, *self.unknown) if self.given.get(name)}

    def inputs(self) -> list[Input]:
        known = {facet.of.parameter: [value for value, _ in facet.values] for facet in self.counted.facets}
        made = []
        for name, entry in self.filters.form.fields.items():
            choices = [str(value) for value, _ in getattr(entry, "choices", ()) if value not in ("", None)]
            value = self.given.get(name, "")
            if value and choices and value not in choices:
                choices.append(value)
            kind = "choice" if choices else KINDS_OF_INPUT.get(type(entry).__name__, "text")
            if kind == "flag":
                kind, choices = "choice", ["true", "false"]
            made.append(Input(name, str(entry.label or name), kind, value, choices, known.get(name, ())))
        return made

    def chips(self) -> list[Chip]:
        fields = self.filters.form.fields
        titles = {of.parameter: of.title for of in self.listing.facets if of.names is not None}
        return [
            Chip(
                titles.get(name) or str((fields[name].label if name in fields else "") or name),
                ", ".join(self._named(name, one) for one in value.split(",")),
                self.address(**{name: None}),
            )
            for name, value in self.active.items()
        ]

    def heads(self) -> list[Head]:
        columns = self.listing.columns
        orderings = set(self.paginator.choices(self.listing.view))
        few = self.counted.total <= words.COUNT_CAP
        large = set(getattr(self.listing.view, "small_orderings", ())) if not few else set()
        computed = set(getattr(self.listing.view, "computed_orderings", ()))
        if self.counted.total > MOST_COMPUTED:
            large |= computed
        heads = []
        for column in self.chosen:
            path = column.path
            possible = path in orderings and path not in large and (path in computed or not columns.is_computed(column))
            now = {path: "ascending", f"-{path}": "descending"}.get(self.ordering, "") if possible else ""
            downwards_first = column.kind in cells.RIGHT or column.kind in ("ago", "time")
            wanted = f"-{path}" if (now == "ascending" or (not now and downwards_first)) else path
            heads.append(Head(column, self.address(**{ORDERING: wanted}) if possible else "", now))
        return heads

    def table(self) -> list[tuple[Any, list[Shown]]]:
        key = self.listing.columns.key
        renders = [(column, self._cell(column).render) for column in self.chosen]
        return [
            (row[key], [Shown(c, render(row, self.now), cells.raw(row[c.name])) for c, render in renders])
            for row in self.page_rows
        ]

    def exports(self) -> list[tuple[str, str]]:
        parameters = {**self.active, **self.fixed, COLUMNS: ",".join(column.name for column in self.chosen)}
        if ORDERING in self.given:
            parameters[ORDERING] = self.ordering
        address = reverse(self.listing.api, args=self.api_args)
        return [
            (form.upper(), f"{address}?{urlencode({**parameters, 'format': form}, safe=',')}")
            for form in ("csv", "ndjson", "json")
        ]

    def views(self) -> list[tuple[SavedView, str, bool]]:
        """(view, address, whether it is what is shown) of the first saved views."""
        now = self.query()
        return [
            (view, f"{self.request.path}?{view.query or f'{VIEW}=all'}", view.query == now)
            for view in self.saved[:MOST_VIEWS]
        ]

    def query(self) -> str:
        """What a saved view keeps of the address."""
        kept = {n: v for n, v in self.given.items() if n not in (CURSOR, VIEW)}
        return urlencode(kept, safe=",")

    def facet_panel(self) -> list[dict[str, Any]]:
        panel = []
        for facet in self.counted.facets:
            name = facet.of.parameter
            on = set(self.given.get(name, "").split(","))
            values = [
                (self._named(name, v), n, self.address(**{name: None if v in on else v}), v in on)
                for v, n in facet.values
            ]
            panel.append({"title": facet.of.title, "name": name, "values": values, "others": facet.others})
        return panel

    def context(self) -> dict[str, Any]:
        listing, chosen = self.listing, {column.name for column in self.chosen}
        order = [*self.chosen, *(c for c in listing.columns.by_name.values() if c.name not in chosen)]
        next_url, previous_url = self.paginator.get_next_link(), self.paginator.get_previous_link()
        few = self.counted.total
        summary = (
            f"{words.count(len(self.page_rows))} of {words.capped(few)} {listing.one if few == 1 else listing.many}"
        )
        return {
            "listing": listing,
            "counted_at": next((row.get(listing.counted) for row in self.page_rows), None),
            "section": listing.section,
            "filters": self.filters.form,
            "active": self.active,
            "inputs": self.inputs(),
            "faults": self.faults,
            "chips": self.chips(),
            "heads": self.heads(),
            "table": self.table(),
            "facets": self.facet_panel(),
            "counted": self.counted,
            "unknown": self.unknown,
            "summary": "" if self.unknown else summary,
            "cap": words.COUNT_CAP,
            "next_url": next_url,
            "previous_url": previous_url,
            "first_url": self.address() if previous_url else "",
            "export_forms": self.exports(),
            "views": self.views(),
            "query": self.query(),
            # What a narrower list is narrowed by goes along: an act on all that match is on these only.
            "matching": urlencode({**self.active, **self.fixed}, safe=","),
            "choices": [(column, column.name in chosen) for column in order],
            "kept": {n: v for n, v in self.given.items() if n not in (*listing.filters, *self.unknown, CURSOR, VIEW)},
            "kept_for_columns": {n: v for n, v in self.given.items() if n not in (COLUMNS, CURSOR, VIEW)},
            "compact": self.given.get(DENSITY) == "compact",
            "density_url": self.address(**{DENSITY: None if self.given.get(DENSITY) == "compact" else "compact"}),
            "clear_url": f"{self.request.path}?{VIEW}=all",
            "seconds": listing.refresh_s,
            "now": self.now,
        }
