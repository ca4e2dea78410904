from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

# Rooms are named by text only: the frame imports none of them.
urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("tasks_app.api.panda_urls")),
]
handler404 = "jedisite.problems.not_found"
