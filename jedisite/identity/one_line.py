"""Names that people give: one line each, since they stand in lists, in logs and in the audit trail."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line


def check_one_line(text: str) -> None:
    """For fields of forms and of the API. Raises ValidationError for a text with control characters."""
    if not is_one_line(text):
        raise ValidationError(f"{text[:60]!r} {NOT_ONE_LINE}.", code="characters")
