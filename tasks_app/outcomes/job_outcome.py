"""How a job ended: the value that all who end jobs hand to `outcomes.book`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tasks_app.outcomes.job_outputs import Output


class Cause(NamedTuple):
    """An error of one component: its name, its code, and what it said."""

    component: str
    code: int
    diag: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: a final status, an error of one component if it failed, and the files that it stored."""

    job_id: int
    task_id: int | None
    status: str
    component: str = ""
    code: int = 0
    diag: str = ""
    stored: tuple[tuple[Output, Mapping[str, Any]], ...] = field(default=())
    by: str = "adder"
    sub_status: str | None = None
    """Written with the end; None leaves what the job has."""
    merge_is_over: bool = False
    """The job waited for its output to be merged, and this is what came of the merge."""
    spares_attempt: bool = False
    """No pilot has had the job: its files get the attempt back that its end is, as long as they have had few."""
    inputs_again: bool = False
    """Its inputs are tried again however it ends: part of what it was to process is left."""
    has_files: bool = True
    """False of a job that waits for a merge of events: another job has its inputs and outputs, and its log is booked now."""
    outputs_needed: bool = True
    """False of a job in whose place another one goes on: what it was to make, and did not store, has not failed."""
    cause: Cause | None = None
    """An error of another component, which led to that of `component`."""

    @property
    def errors(self) -> tuple[Cause, ...]:
        """The errors that are written with the end."""
        own = (Cause(self.component, self.code, self.diag),) if self.component else ()
        return own if self.cause is None else (*own, self.cause)
