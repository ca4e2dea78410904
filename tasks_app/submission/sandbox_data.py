"""Sandboxes that jobs get from data management: they are looked for when a task is submitted."""

from __future__ import annotations

from tasks_app.ddm import data_management
from tasks_app.inputs import makers
from tasks_app.params.buildstep import BadBuildError, via_data_management
from tasks_app.params.faults import Faults, shown
from tasks_app.params.schema import TaskParams

FIELD = "tarBallViaDDM"


def check_there(params: TaskParams, user: str) -> None:
    """Raises ParamErrors for a sandbox (`dataset:file`) that data management does not have and that no task is about to make."""
    faults = Faults()
    given = {FIELD: params.text(FIELD), f"buildSpec.{FIELD}": (params.spec("buildSpec") or {}).get(FIELD)}
    for field, text in given.items():
        if not text:
            continue
        try:
            dataset, lfn = via_data_management(text, field) or ("", "")
        except BadBuildError as exc:
            faults.add(field, "form", f"{exc}.")
            continue
        if makers.still_at_it([dataset]):
            continue
        if dataset in data_management().unknown([dataset], user=user):
            faults.add(
                field, "known", f"There is no dataset {shown(dataset)}, from which jobs would get their sandbox."
            )
        elif lfn in data_management().lacking([dataset], [lfn], complete=True):
            faults.add(field, "known", f"{shown(lfn)}, the sandbox, is not in {dataset}.")
    faults.raise_if_any()
