"""The refiner of production tasks: managed campaigns whose outputs are inputs of other tasks."""

from __future__ import annotations

import re
from dataclasses import replace

from tasks_app.domain.scopes import UNMERGED
from tasks_app.params.kinds import split_names
from tasks_app.params.schema import TaskParams
from tasks_app.refining.completing import Raw, completed, copy_of, fill
from tasks_app.refining.policy import Policy, chosen
from tasks_app.refining.preprocessing import refine_in_two
from tasks_app.refining.values import DatasetSpec, OutputTemplate, Refined, Request

BACK_END = "rucio"
EVENT_SERVICE_OPTION = {"type": "constant", "value": "--eventService=True", "es_only": True}
BASE_MEMORY_MB = {"simul": 1000, "pile": 1500, "reco": 1000}
"""Memory of a job whatever its cores, by processing type, of tasks that state none."""
DATABASE_RELEASE = ("repeat", "nosplit")
_VERSION = re.compile(r"\.\d+$")
_TYPE_FIELD = 4


def refine_production(request: Request) -> Refined:
    """Refine a production task. Raises CannotRefine, NotYet or ParamErrors."""
    params = completed(request.params, _complete(request))
    refined = refine_in_two(replace(request, params=params))
    throttled = None if params.flag("noThrottle") else 0
    has_parent = request.parent is not None and request.parent.task_id != request.task_id
    return replace(
        refined,
        task={**refined.task, "numthrottled": throttled},
        datasets=tuple(_dataset(spec, has_parent=has_parent) for spec in refined.datasets),
        templates=tuple(_versioned(template) for template in refined.templates),
        params=params.raw,
        transient=_transient(request, refined) if has_parent else (),
    )


def _complete(request: Request) -> Raw:
    params, policy = request.params, request.policy
    raw = copy_of(params)
    fill(
        raw,
        ddmBackEnd=BACK_END,
        baseRamCount=BASE_MEMORY_MB.get(params.text("processingType") or ""),
        pushStatusChanges=chosen(policy.push_status_percent, policy.draws.push_status),
    )
    if _becomes_event_service(params, policy):
        raw.update(
            nEventsPerWorker=1,
            nEsConsumers=policy.conversion.consumers,
            nSitesPerJob=policy.conversion.sites,
            maxAttemptES=1,
            maxAttemptEsJob=0,
            notDiscardEvents=True,
            decAttOnFailedES=True,
            coreCount=0,
        )
    if EVENT_SERVICE_OPTION not in raw["jobParameters"]:
        raw["jobParameters"].append(dict(EVENT_SERVICE_OPTION))
    return raw


def _becomes_event_service(params: TaskParams, policy: Policy) -> bool:
    """By chance, for the share of tasks that the submitter gives; or because the pool of events runs low."""
    if params.given("nEventsPerWorker") or params.text("useJobCloning"):
        return False
    if policy.draws.event_service < (params.number("esFraction") or 0):
        return True
    priority = params.whole("currentPriority", params.whole("taskPriority", 0)) or 0
    return params.flag("esConvertible") and policy.conversion.allows(priority)


def _dataset(spec: DatasetSpec, *, has_parent: bool) -> DatasetSpec:
    """A master made by the parent is checked against what the parent made."""
    if spec.type == "input" and spec.master is None and has_parent:
        return _with(spec, "cc")
    return with_database(spec)


def with_database(spec: DatasetSpec) -> DatasetSpec:
    """The dataset as it goes to jobs: a database release that is read besides other inputs goes to every job."""
    if spec.type == "input" and spec.master is not None and is_database_release(spec.datasetname):
        return _with(spec, *DATABASE_RELEASE)
    return spec


def _with(spec: DatasetSpec, *tokens: str) -> DatasetSpec:
    return replace(spec, attributes=",".join(dict.fromkeys((*split_names(spec.attributes), *tokens))))


def is_database_release(dataset: str) -> bool:
    """Whether a dataset holds a release of the conditions database: `ddo.000001.Project.Ideal.DBRelease.v310701`."""
    name = dataset.rpartition(":")[2]
    return name.startswith("ddo.") or "DBRelease" in name.split(".")


def _versioned(template: OutputTemplate) -> OutputTemplate:
    """File names of production end in a version; a retry of the server makes the next one."""
    name = template.filenametemplate
    if _VERSION.search(name) or name.endswith(f".{UNMERGED}") or name.startswith("regex|"):
        return template
    return replace(template, filenametemplate=f"{name}.1")


def _transient(request: Request, refined: Refined) -> tuple[str, ...]:
    """Outputs of the parent that a merge task makes superfluous: of a type that it reads and writes."""
    parent = request.parent
    if parent is None or request.params.text("processingType") != "merge":
        return ()
    inputs = [s.datasetname for s in refined.datasets if s.type == "input" and s.datasetname in parent.output_datasets]
    made = {data_type(s.datasetname) for s in refined.datasets if s.type == "output"} - {None}
    return tuple(name for name in inputs if data_type(name) in made)


def data_type(dataset: str) -> str | None:
    """The fifth field of a dataset's name, `AOD` of `mc23.801000.Process.recon.AOD.e1_r2`; None for shorter names."""
    fields = dataset.rstrip("/").rpartition(":")[2].split(".")
    return fields[_TYPE_FIELD] if len(fields) > _TYPE_FIELD else None
