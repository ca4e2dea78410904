"""Addresses of PanDA's calls on ranges of events, and of our pages on them."""

from __future__ import annotations

from django.urls import include, path

from events_app.api import range_calls, status_calls
from tasks_app.api.panda.calls import addresses

urlpatterns = [*addresses([range_calls, status_calls]), path("", include("events_app.web.range_urls"))]
