"""Workflows: files of dropped packages come back when their jobs have ended, and leave their tasks then."""

from __future__ import annotations

from jedisite.agents.registry import Pass, agent
from jedisite.vocabulary.words import plural
from tasks_app.workflows.dropping import remove_canceled, with_canceled_files

LIMIT = 50


@agent("workflows", every="1m", title="Removes files of dropped packages whose jobs have ended")
def run(limit: int = LIMIT) -> Pass:
    """Remove what has come back of the workflows that have something dropped."""
    removed = remove_canceled(with_canceled_files(limit))
    return Pass(removed, f"{plural(removed, 'file')} removed" if removed else "")
