"""The merge step of event service in the command line of its consumers: JEDI writes it there between two pairs of tags. Pure.

The job that merges their outputs gets program and parameters from it, and consumers get their command line without it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PROGRAM, _PARAMETERS = "PANDA_ESMERGE_TRF", "PANDA_ESMERGE_JOBP"
_TAGGED: Final = re.compile(rf"\s*<({_PROGRAM}|{_PARAMETERS})>.*?</\1>", re.DOTALL)


def with_merge_step(text: str, spec: Mapping[str, Any] | None) -> str:
    """A command line with the step that `esmergeSpec` describes; the same where it describes none."""
    if not spec:
        return text
    program, parameters = spec.get("transPath") or "", spec.get("jobParameters") or ""
    return f"{text}<{_PROGRAM}>{program}</{_PROGRAM}><{_PARAMETERS}>{parameters}</{_PARAMETERS}>"


def without_merge_step(text: str) -> str:
    """The command line of a consumer, as it is run."""
    return _TAGGED.sub("", text) if _PROGRAM in text or _PARAMETERS in text else text
