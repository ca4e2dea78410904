"""The refiner of users' analysis tasks: the dictionary is completed by rules for analysis, then refined as usual."""

from __future__ import annotations

import re
from dataclasses import replace

from tasks_app.params.items import PLACEHOLDER
from tasks_app.params.schema import TaskParams
from tasks_app.refining.completing import Raw, completed, copy_of, fill, fill_step
from tasks_app.refining.generic import check_parent, refine_generic
from tasks_app.refining.policy import Policy, chosen
from tasks_app.refining.preprocessing import refine_preprocessing, with_results
from tasks_app.refining.production import with_database
from tasks_app.refining.values import CannotRefine, Refined, Request

LEAST_PRIORITY, MOST_PRIORITY, USUAL_PRIORITY = 900, 1100, 1000
MOVE_INPUT_PRIORITY = 1001
"""A task priority above the usual one lets inputs be moved to where jobs can run."""
ATTEMPTS, FAILURES = 10, 3
SCOUT_SUCCESS_TENTHS = 5
LIGHT_BASE_WALLTIME_S = 60
LAST_COPYING_RELEASE = (20, 20)
"""Releases up to this one cannot read inputs over the network."""

_RELEASE = re.compile(r"[A-Za-z]*-?(\d+)\.(\d+)")
_IMAGE = re.compile(r"--containerImage[ =]+[\"']?([^\s\"'$]+)")
_IMAGE_OF_PLATFORM = re.compile(r"\+([^\s@#&+]+)")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.+-]")


def refine_analysis(request: Request) -> Refined:
    """Refine an analysis task. A task with a preprocessing step gets that step alone first.

    Raises CannotRefine, NotYet, or ParamErrors when the results of preprocessing do not fit.
    """
    check_parent(request)
    params = completed(request.params, _complete(request))
    request = replace(request, params=params)
    if params.spec("preproSpec") is not None and request.preprocessed is None:
        return replace(refine_preprocessing(request), params=params.raw)
    if request.preprocessed is not None:
        request = replace(request, params=with_results(params, request.preprocessed))
    refined = refine_generic(request)
    _check_names(refined)
    task = {**refined.task, "reqid": request.policy.jobset_id or refined.task["reqid"]}
    # Results of preprocessing are put in anew whenever the task is refined, so the stored text keeps its marks.
    datasets = tuple(with_database(spec) for spec in refined.datasets)
    return replace(refined, task=task, datasets=datasets, params=params.raw)


def _complete(request: Request) -> Raw:
    params, policy = request.params, request.policy
    raw = copy_of(params)
    words = (params.text("processingType") or "").split("-")
    _transforms(raw, words, policy)
    _container(raw, params)
    _input(raw, params)
    _sizes(raw, words, policy)
    _priorities(raw, request)
    fill(
        raw,
        scoutSuccessRate=SCOUT_SUCCESS_TENTHS,
        maxAttempt=ATTEMPTS,
        maxFailure=FAILURES,
        pushStatusChanges=chosen(policy.push_status_percent, policy.draws.push_status),
    )
    if not params.flag("official"):
        raw.pop("skipScout", None)
    return raw


def _transforms(raw: Raw, words: list[str], policy: Policy) -> None:
    names = policy.transforms
    athena = "athena" in words
    run = names.athena if athena else names.container if "cont" in words else names.general
    fill(raw, transPath=run)
    fill_step(raw, "buildSpec", transPath=names.build_athena if athena else names.build_general)
    fill_step(raw, "mergeSpec", transPath=names.merge)
    fill_step(raw, "preproSpec", transPath=names.preprocess)


def _container(raw: Raw, params: TaskParams) -> None:
    """The image that the command line or the platform names."""
    texts = [item.value for item in params.items if not item.is_template]
    found = next((match[1] for text in texts if (match := _IMAGE.search(text))), None)
    if found is None and isinstance(params.architecture, str):
        match = _IMAGE_OF_PLATFORM.search(params.architecture)
        found = match[1] if match else None
    fill(raw, container_name=found)


def _input(raw: Raw, params: TaskParams) -> None:
    """How inputs are read."""
    release = _RELEASE.match(params.text("transUses") or "")
    if release and (int(release[1]), int(release[2])) <= LAST_COPYING_RELEASE:
        fill(raw, useLocalIO=1)
    if not raw.get("useLocalIO"):
        fill(raw, allowInputLAN="use")
    inputs = [item for item in raw["jobParameters"] if item.get("param_type") == "input" and item.get("dataset")]
    if any("RAW" in name.rstrip("/").split(".") for item in inputs for name in item["dataset"].split(",")):
        fill(raw, forceStaged=True)


def _sizes(raw: Raw, words: list[str], policy: Policy) -> None:
    if raw.get("outDiskCount") is None:
        raw.update(outDiskCount=policy.out_disk_kb, outDiskUnit="kB")
    light = "athena" not in words and "cont" not in words and not raw.get("container_name")
    fill(
        raw,
        cpuTimeUnit="HS06sPerEvent",
        baseWalltime=LIGHT_BASE_WALLTIME_S if light else None,
        maxWalltime=policy.target_walltime_h,
        maxCoreCount=policy.max_core_count,
    )


def _priorities(raw: Raw, request: Request) -> None:
    params, policy = request.params, request.policy
    assigned = params.whole("taskPriority", request.defaults.analysis_priority)
    current = params.whole("currentPriority", assigned) or 0
    # Of super users the columns are raised.
    if (
        policy.least_priority(request.user, params.text("workingGroup")) is None
        and not LEAST_PRIORITY <= current <= MOST_PRIORITY
    ):
        current = USUAL_PRIORITY
    raw["currentPriority"] = current
    if chosen(policy.move_input_percent, policy.draws.move_input):
        raw["taskPriority"] = MOVE_INPUT_PRIORITY


def _check_names(refined: Refined) -> None:
    """Raises CannotRefine for names of outputs that storage systems or command lines would not take."""
    for template in refined.templates:
        dataset = refined.datasets[template.dataset].datasetname.rstrip("/").rpartition(":")[2]
        for name in (template.filenametemplate, dataset):
            bad = sorted(set(_NOT_IN_NAMES.findall(PLACEHOLDER.sub("", name))))
            if bad and not name.startswith("regex|"):
                raise CannotRefine(
                    f"{name} is the name of an output and contains {' '.join(map(repr, bad))}; "
                    "letters, digits and _ . + - are allowed."
                )
