"""Checks of this installation's own settings for `manage.py check --deploy`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import Tags, Warning, register


@register(Tags.security, deploy=True)
def development_issuer(app_configs: Any, **options: Any) -> list[Warning]:
    """The development issuer is for trials."""
    if not settings.JEDI_DEV_ISSUER or settings.DEBUG:
        return []
    hint = "Unset JEDI_DEV_ISSUER, and name a real issuer in JEDI_OIDC."
    return [Warning("This site makes OIDC tokens itself (JEDI_DEV_ISSUER).", hint=hint, id="jedisite.W001")]
