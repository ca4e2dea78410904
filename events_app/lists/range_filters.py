"""What the list of a task's event ranges can be filtered by."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

import django_filters
from django.db.models import Q, QuerySet

from events_app.models import Event
from events_app.rules.event_states import EventStatus
from events_app.rules.range_standing import NO_ATTEMPT, WORDS
from jedisite.vocabulary.words import thousands
from tasks_app.lists.filtersets import IdFilter, StatusFilter

MOST_BLOCKS: Final = 100_000
"""Rows of a task among which a state is looked for when no file and no job is named: no index has the states of a task."""


def in_state(word: str) -> Q:
    """Blocks in a state that is named by its word."""
    if word == NO_ATTEMPT:
        return Q(status=EventStatus.READY, attempt__lte=0)
    status = EventStatus[word.upper()]
    return Q(status=status, attempt__gt=0) if status is EventStatus.READY else Q(status=status)


class RangeFilter(django_filters.FilterSet):
    """Ranges of one task."""

    status = StatusFilter(choices=[(word, word) for word in WORDS], method="in_states", label="State")
    file = IdFilter("file_id", label="File number")
    job = IdFilter("job_id", label="Owner")
    jobset = IdFilter("event_offset", label="Jobset")
    jumbo = django_filters.BooleanFilter(method="of_jumbo_jobs", label="Jumbo")
    awaits_retry = django_filters.BooleanFilter(method="that_await_retry", label="Failed and not yet copied")
    error = django_filters.NumberFilter(
        field_name="error_code", min_value=-(2**31), max_value=2**31 - 1, decimal_places=0, label="Error code"
    )

    class Meta:
        model = Event
        fields: list[str] = []

    def in_states(self, queryset: QuerySet[Event], name: str, value: list[str]) -> QuerySet[Event]:
        return queryset.filter(reduce(or_, map(in_state, value))) if value else queryset

    def that_await_retry(self, queryset: QuerySet[Event], name: str, value: bool) -> QuerySet[Event]:
        """Failed ranges of which no copy has been made to be tried again; with False all others."""
        waits = Q(status=EventStatus.FAILED, processed_up_to__isnull=False)
        return queryset.filter(waits if value else ~waits)

    def of_jumbo_jobs(self, queryset: QuerySet[Event], name: str, value: bool) -> QuerySet[Event]:
        """Ranges that a jumbo job has, or had; with False all others."""
        return queryset.filter(is_jumbo__isnull=not value)

    @property
    def form(self) -> Any:
        form = super().form
        wanted = next(
            (name for name in ("status", "jobset", "error", "jumbo", "awaits_retry") if form.data.get(name)), None
        )
        if form.is_bound and wanted and not (form.data.get("file") or form.data.get("job")) and self._is_large():
            message = f"The task has more than {thousands(MOST_BLOCKS)} blocks of ranges: name a file or an owner, too."
            if wanted not in form.errors:
                form.add_error(wanted, message)
        return form

    def _is_large(self) -> bool:
        """Whether there are too many rows to look at all. At most one query for each set of filters."""
        if "_rows" not in self.__dict__:
            every: QuerySet[Event] = self.queryset
            self._rows = len(every.order_by().values_list("pk")[MOST_BLOCKS : MOST_BLOCKS + 1])
        return bool(self._rows)
