from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.templatetags.static import static
from django.urls import include, path
from django.views.decorators.http import require_safe
from django.views.generic import RedirectView

from jedisite.identity import dev_issuer, dev_keys, token_pages
from jedisite.identity.callers import Right, needs
from jedisite.web import health

admin.autodiscover()  # here and not at each start: commands have no pages
_icon = RedirectView.as_view(url=static("icon.svg"), permanent=True)
# Rooms are named by text only: the frame imports none of them.
urlpatterns = [
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("tokens/", token_pages.own_tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", token_pages.revoke_own, name="token-revoke"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("favicon.ico", needs(Right.NOTHING)(require_safe(_icon))),
    path("admin/", admin.site.urls),
    path("auth/<str:vo>_auth_config.json", dev_issuer.auth_config, name="auth-config"),
    path(f"{dev_keys.PATH}/.well-known/openid-configuration", dev_issuer.discovery),
    path(f"{dev_keys.PATH}/keys", dev_issuer.keys),
    path(f"{dev_keys.PATH}/device", dev_issuer.device),
    path(f"{dev_keys.PATH}/token", dev_issuer.token),
    path(f"{dev_keys.PATH}/verify", dev_issuer.verify, name="device-verify"),
    path("", include("tasks_app.web.urls")),
    path("", include("events_app.urls")),
    path("", include("tasks_app.api.panda.urls")),
    path("", include("tasks_app.api.v2.urls")),
]
handler400 = "jedisite.web.problems.bad_request"
handler403 = "jedisite.web.problems.forbidden"
handler404 = "jedisite.web.problems.not_found"
handler500 = "jedisite.web.problems.server_error"
