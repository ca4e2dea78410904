"""What this site does not do for any task: steps that are not available here, and merge jobs that are not its own."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final

from tasks_app.params import not_available
from tasks_app.params.faults import Faults, ParamErrors
from tasks_app.params.splitrule import SplitRule

MERGES: Final = "pmerge"
"""The processing type of jobs that merge."""


def check_offered(given: Mapping[str, Any], faults: Faults) -> None:
    """Add a fault for each step that these parameters ask for and there is not, and for jobs called merge jobs."""
    if given.get("processingType") == MERGES:
        said = f"{MERGES} is that of jobs which merge what others have written."
        faults.add("processingType", "reserved", said)
    not_available.check_given(given, faults)


def check_refined(columns: Mapping[str, object], kept: Container[str] = ()) -> None:
    """The same for the columns that a task gets, whatever refiners have added to its parameters. Raises ParamErrors.

    `kept`: parameters that a task which exists was submitted with, and keeps.
    """
    faults = Faults()
    not_available.check_rule(SplitRule.parse(str(columns["splitrule"] or "")), faults)
    if found := tuple(fault for fault in faults.found if fault.field not in kept):
        raise ParamErrors(found)
