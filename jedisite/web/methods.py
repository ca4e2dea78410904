"""The answer of the API to OPTIONS: which methods an address takes. The schema at /api/schema/ says the rest."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import BaseMetadata


class Methods(BaseMetadata):
    """The methods stand in the header Allow, too."""

    def determine_metadata(self, request: Any, view: Any) -> dict[str, list[str]]:
        return {"methods": view.allowed_methods}
