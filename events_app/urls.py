"""Addresses of PanDA's calls on ranges of events."""

from __future__ import annotations

from events_app.api import range_calls, status_calls
from tasks_app.api.panda.calls import addresses

urlpatterns = addresses([range_calls, status_calls])
