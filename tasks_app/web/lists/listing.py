"""What a list page is made of: which list it is, and the parts that its template shows. `list_page.py` makes the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from jedisite.web.columns import COLUMNS, Column, Columns
from jedisite.web.paging import CURSOR, ORDERING, PAGE_SIZE
from tasks_app.domain import window
from tasks_app.web.frame import frame
from tasks_app.web.lists import cells
from tasks_app.web.lists.cells import Cell
from tasks_app.web.lists.facets import FacetOf

LONGEST_TITLE = 500
SAID = frozenset({"error", "last_error"})
"""Columns of codes below which pages write what they mean."""
DENSITY, PICKED, VIEW = "density", "column", "view"
SWITCHES = (COLUMNS, CURSOR, PAGE_SIZE, ORDERING, DENSITY, PICKED, "plots")
"""What addresses of lists say beside filters."""
OF_FRAME = frozenset((*window.NAMES, *frame.SCOPE))
"""What links of the frame bring along: an address of these only has not chosen any rows."""


@dataclass(frozen=True)
class Listing:
    """A list page. `view` is the API's view set of the same list: filters, columns and orders are that one's.

    `page` is the address's name here, `api` the one in the API; `cells` say how columns are shown where their kind does
    not say enough. `actions`: (command, title) of what can be done to a selection, at the address `bulk`. While there is
    nothing, the page says `nothing_yet`, and shows the template `nothing_help`. `counted`: its column of when it counted.
    `preset`: the filters of an address that says none; they stand in the address then, so that they can be taken away.
    `is_in_key_order`: an index has the rows of what the list belongs to in the order of the key, so the newest are read alone.
    """

    page: str
    api: str
    section: str
    title: str
    one: str
    many: str
    view: Any
    facets: Sequence[FacetOf] = ()
    cells: Mapping[str, Cell] = field(default_factory=dict)
    template: str = "lists/list.html"
    refresh_s: int = 10
    bulk: str = ""
    actions: Sequence[tuple[str, str]] = ()
    nothing_yet: str = ""
    nothing_help: str = ""
    usual_ordering: str = ""
    has_views: bool = True
    counted: str = ""
    preset: Mapping[str, str] = field(default_factory=dict)
    is_in_key_order: bool = False

    @property
    def columns(self) -> Columns:
        columns: Columns = self.view.columns
        return columns

    @property
    def filters(self) -> Mapping[str, Any]:
        base: Mapping[str, Any] = self.view.filterset_class.base_filters
        return base


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is on: its title, its value in words, and the address without it."""

    title: str
    value: str
    off_url: str


@dataclass(frozen=True, slots=True)
class Input:
    """A field of the filter panel. `choices` are all there are; `suggestions` are what the list has now."""

    name: str
    title: str
    kind: str
    value: str
    choices: Sequence[str] = ()
    suggestions: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column, with the address that orders by it ("" where that is not possible) and the order now."""

    column: Column
    order_url: str
    order: str

    @property
    def side(self) -> str:
        kinds = (("num", self.column.kind in cells.RIGHT), ("wide", self.column.kind in cells.WIDE))
        return " ".join(name for name, holds in (*kinds, ("said", self.column.name in SAID)) if holds)


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as it stands in the table: `raw` is the value as the CSV has it."""

    column: Column
    html: str | SafeString
    raw: str

    @property
    def side(self) -> str:
        kinds = (
            ("num", self.column.kind in cells.RIGHT),
            ("wide", self.column.kind in cells.WIDE),
            ("said", self.column.name in SAID),
            ("blank", self.raw == ""),
            ("nowrap", self.column.kind in ("ago", "time")),
        )
        return " ".join(name for name, holds in kinds if holds)

    @property
    def title(self) -> str:
        """The whole of a text that may be cut at the edge of its cell."""
        may_be_cut = self.column.kind in (*cells.WIDE, "text") or self.column.name in SAID
        return self.raw[:LONGEST_TITLE] if may_be_cut else ""


def list_address(path: str, listing: Listing, kept: Mapping[str, str]) -> str:
    """The address of a list; that of all of it says so, as one that says nothing stands for a usual view or the preset."""
    if not kept or (listing.preset and OF_FRAME.issuperset(kept)):
        kept = {**kept, VIEW: "all"}
    return f"{path}?{urlencode(kept, safe=',')}"
