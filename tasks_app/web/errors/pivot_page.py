"""Failed jobs by two dimensions, as a table and as a heat map."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from jedisite.identity.callers import Right, needs
from tasks_app.drawing.scales import shade
from tasks_app.failures import pivots
from tasks_app.failures.failure_queries import DIMENSIONS
from tasks_app.web.errors.error_frame import FILTERS, Failures, failures_of, frame_of
from tasks_app.web.frame import keyset_pages
from tasks_app.web.lists.misspelt import takes


@needs(Right.READ)
@require_safe
@takes(*FILTERS, "order")
def error_pivot(request: HttpRequest) -> HttpResponse:
    """Failed jobs by two dimensions, as a table and as a heat map."""
    now = timezone.now()
    found = failures_of(request, now)
    rows_by, columns_by, measure, faults = pivots.choice(request.GET)
    table = pivots.pivot(found.every, found.window, rows_by, columns_by, measure)
    url = _cell_urls(found, table)
    highest = max((cell.value or 0 for line in table.cells for cell in line), default=0)
    context = {
        **frame_of(request, "errors-pivot", found, now),
        "pivot": table,
        "faults": faults,
        "dimensions": list(DIMENSIONS.values()),
        "measures": pivots.MEASURES,
        "lines": [
            {
                "head": row,
                "url": url(row.key, None),
                "cells": [
                    {"cell": cell, "shade": shade(cell.value, highest), "url": url(cell.row.key, cell.column.key)}
                    for cell in line
                ],
            }
            for row, line in zip(table.rows, table.cells, strict=True)
        ],
        "heads": [{"head": head, "url": url(None, head.key)} for head in table.columns],
        "jobs_url": found.url("errors-jobs"),
        "other_way": keyset_pages.address(request, rows=columns_by, columns=rows_by),
        "heat": {
            "rows": [row.label[:60] for row in table.rows],
            "columns": [column.label[:60] for column in table.columns],
            "cells": [
                [x, y, round(cell.value, 2)]
                for y, line in enumerate(table.cells)
                for x, cell in enumerate(line)
                if cell.value
            ],
            "urls": [url(cell.row.key, cell.column.key) for line in table.cells for cell in line if cell.value],
            "measure": pivots.MEASURES[measure],
        },
        "exports": [
            (form.upper(), f"{reverse('api-v2:errors-pivot')}?{urlencode(_export(found, rows_by, columns_by, form))}")
            for form in ("json", "csv", "ndjson")
        ],
    }
    return render(request, "tasks_app/error_pivot.html", context)


def _export(found: Failures, rows_by: str, columns_by: str, form: str) -> dict[str, str]:
    return {**found.given, "rows": rows_by, "columns": columns_by, "format": form}


def _cell_urls(found: Failures, table: pivots.Pivot) -> Callable[[str | None, str | None], str]:
    """Addresses of the failed jobs of a row, a column, or both by their keys; "" where no filter finds them: those of
    which a value is not known. Made of one address, since there are hundreds."""
    names = (table.rows_by.filter, table.columns_by.filter)
    start = reverse("dashboard:errors-jobs")
    kept = {
        (by_row, by_column): urlencode(
            {n: v for n, v in found.given.items() if not ((by_row and n == names[0]) or (by_column and n == names[1]))}
        )
        for by_row in (True, False)
        for by_column in (True, False)
    }

    def url(row: str | None, column: str | None) -> str:
        if row == "" or column == "":
            return ""
        picked = [f"{n}={quote(key, safe='')}" for n, key in zip(names, (row, column), strict=True) if key is not None]
        return f"{start}?{'&'.join([kept[row is not None, column is not None], *picked])}"

    return url
