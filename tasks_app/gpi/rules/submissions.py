"""What a submission of subjobs comes to: which are submitted, whether it is an error, whether all is taken back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tasks_app.gpi.rules.master_status import FAILED, NEW, SUBMITTED, master_status


@dataclass(frozen=True)
class SubmissionResult:
    """`statuses` of the subjobs, in order; `is_error`: the caller is told by an exception; `is_taken_back`: the master is
    new again, and has no subjobs."""

    statuses: tuple[str, ...]
    is_error: bool
    is_taken_back: bool

    @property
    def master(self) -> str:
        return NEW if self.is_taken_back else master_status(self.statuses)


def one_by_one(submit: Iterable[Callable[[], bool]], *, keep_going: bool) -> SubmissionResult:
    """Submit in order; each call says whether it was taken. Without `keep_going` the first failure ends it.

    Who failed or was not tried stays new; when that is all of them, the whole submission is taken back.
    """
    statuses: list[str] = []
    failed = False
    for one in submit:
        taken = not (failed and not keep_going) and one()
        failed = failed or not taken
        statuses.append(SUBMITTED if taken else NEW)
    return SubmissionResult(tuple(statuses), failed and not keep_going, SUBMITTED not in statuses)


def in_bulk(taken: Sequence[bool], *, keep_going: bool) -> SubmissionResult:
    """One call submitted all; whom the service refused has failed, and can be resubmitted."""
    statuses = tuple(SUBMITTED if one else FAILED for one in taken)
    return SubmissionResult(statuses, FAILED in statuses and not keep_going, False)
