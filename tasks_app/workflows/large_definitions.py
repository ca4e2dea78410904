"""Limits how many large definitions and workflows the web server reads at once: each keeps a thread for seconds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Final

from jedisite.server.places import Places
from jedisite.web.problems import Unavailable
from tasks_app.models import WorkflowPackage

LARGE: Final = 50_000
"""Characters. Shorter ones are read within half a second."""
MANY: Final = 1000
"""Packages. Of workflows with fewer the graph is there within a tenth of a second."""


class TooManyLargeDefinitions(Unavailable):
    default_detail = "Other large workflows are being read; please try again in a moment."
    wait = 10


class OwnLargeDefinition(TooManyLargeDefinitions):
    default_detail = "Another large workflow is being read for you; please try again in a moment."


READS: Final = Places(2, 1, TooManyLargeDefinitions, OwnLargeDefinition)


def place_for(characters: int, account: str) -> AbstractContextManager[None]:
    """A place to read a definition of this length. Raises TooManyLargeDefinitions on entry."""
    return READS.place(account) if characters > LARGE else nullcontext()


def place_of(workflow_id: int, account: str) -> AbstractContextManager[None]:
    """A place to read or command a stored workflow. Raises TooManyLargeDefinitions on entry."""
    packages = WorkflowPackage.objects.filter(workflow_id=workflow_id).order_by()[: MANY + 1].count()
    return READS.place(account) if packages > MANY else nullcontext()
