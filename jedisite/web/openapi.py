"""What the schema of the API (OpenAPI) says besides the views: how callers are known, and what a refusal looks like."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension

from jedisite.web.problems import CONTENT_TYPE

METHODS = frozenset({"get", "post", "put", "patch", "delete"})
RESOURCES = "/api/v2/"
PANDA = ("/api/v1/", "/server/panda/")

_TEXT = {"type": "string"}
PROBLEM = {
    "type": "object",
    "description": "Why a request was refused (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "rule", "message"],
                "properties": {
                    "field": {**_TEXT, "description": "path of the field, such as jobParameters[2].param_type"},
                    "rule": {**_TEXT, "description": "short and stable"},
                    "message": _TEXT,
                },
            },
        },
    },
}


class TokenScheme(OpenApiAuthenticationExtension):
    target_class = "jedisite.identity.callers.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A token made at /api/v2/tokens/."}


class SessionScheme(OpenApiAuthenticationExtension):
    target_class = "jedisite.identity.callers.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid", "description": "A session of the browser."}


def only_interfaces(endpoints: list[Any]) -> list[Any]:
    """What programs call: the resources, and PanDA's own calls."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith((RESOURCES, *PANDA))]


def resources_first(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Puts the resources before the calls of PanDA's clients and pilots, some of which are always refused."""
    result["paths"] = dict(sorted(result["paths"].items(), key=lambda row: not row[0].startswith(RESOURCES)))
    return result


def add_problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Every operation on resources may be refused with a problem document."""
    result["components"].setdefault("schemas", {})["Problem"] = PROBLEM
    refused = {
        "description": "The request was refused.",
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in (found for where, found in result["paths"].items() if where.startswith(RESOURCES)):
        for method, operation in operations.items():
            if method in METHODS:
                operation["responses"]["4XX"] = refused
    return result
