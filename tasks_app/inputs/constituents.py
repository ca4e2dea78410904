"""The datasets of the containers that a task reads, and whether all are there."""

from __future__ import annotations

from collections.abc import Mapping

from tasks_app.ddm import data_management
from tasks_app.ddm.base import UnknownDatasetError
from tasks_app.inputs import makers
from tasks_app.params.schema import TaskParams
from tasks_app.refining.base import NotYet, ParentView, containers_of
from tasks_app.refining.preprocessing import with_results
from tasks_app.refining.values import NothingThere


def constituents_of(
    params: TaskParams, parent: ParentView | None, task_id: int, preprocessed: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """The datasets of the containers that the inputs name. Raises NotYet or CannotRefine for one that does not exist, or that
    another task is still to fill.

    Inputs that a preprocessing step names are known by what it found.
    """
    if params.spec("preproSpec") is not None:
        if preprocessed is None:
            return {}
        params = with_results(params, preprocessed)
    waits = params.given("waitInput") or (parent is not None and parent.progress == "running")
    found: dict[str, list[str]] = {}
    for name in containers_of(params):
        try:
            found[name] = data_management().constituents(name)
        except UnknownDatasetError as exc:
            if waits:
                raise NotYet(f"{exc}; the task waits for it") from exc
            if not params.flag("ignoreMissingInDS"):
                raise NothingThere(str(exc), [name]) from exc
            found[name] = []
        if waits and not found[name]:
            raise NotYet(f"the container {name} has no datasets yet; the task waits for them")
    # The refiner would do with the others that the same item names.
    for name in makers.still_at_it([name for name, datasets in found.items() if not datasets], task_id):
        raise NothingThere(f"The container {name} contains no datasets.", [name])
    return found
