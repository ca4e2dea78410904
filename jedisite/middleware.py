"""What every answer carries."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

STRICT = "default-src 'self'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'; form-action 'self'; img-src 'self' data:"
# The admin's theme and the API viewer are other people's pages: they need inline styles and evaluated expressions.
RELAXED = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'self'; frame-ancestors 'none'; form-action 'self'"
)


class ContentSecurityPolicy:
    """Set the Content-Security-Policy: no inline script or style on our own pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        relaxed = request.path.startswith(("/admin/", "/api/docs/"))
        response.headers.setdefault("Content-Security-Policy", RELAXED if relaxed else STRICT)
        return response
