"""Labels of tasks and jobs (prodSourceLabel): which are of analysis, and which everybody may use."""

from __future__ import annotations

from enum import Enum
from typing import Final

ANALYSIS_LABELS: Final = frozenset({"user", "panda"})
TESTED_LABELS: Final = frozenset({"managed", "test"})
LABELS_FOR_ALL: Final = ("user", "test")
"""Labels of tasks that everybody may submit; the others need the production right."""


class Labels(Enum):
    """Classes of prodSourceLabel."""

    ANY = "any label"
    PRODUCTION = "managed and test"
    OTHER = "any label but managed and test"
    ANALYSIS = "user and panda"
    NOT_ANALYSIS = "any label but user and panda"
