"""Addresses of PanDA's calls on ranges of events."""

from __future__ import annotations

from events_app import api
from tasks_app.api.panda.calls import addresses

urlpatterns = addresses([api])
