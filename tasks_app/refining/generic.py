"""The refiner for every task that no other refiner claims."""

from __future__ import annotations

from tasks_app.domain.range_jobs import is_own_program
from tasks_app.params.combinations import reads_files
from tasks_app.params.schema import TaskParams
from tasks_app.params.splitrule import SplitRule
from tasks_app.params.to_splitrule import from_params
from tasks_app.refining.columns import event_service_mode, task_columns
from tasks_app.refining.layout import Layout, check_merging, lay_out, text_of
from tasks_app.refining.values import CannotRefine, Defaults, NotYet, Refined, Request


def refine_generic(request: Request) -> Refined:
    """Refine with the defaults of the installation. Raises CannotRefine or NotYet."""
    check_parent(request)
    params = request.params
    layout = lay_out(request, event_service=event_service_mode(params) not in (0, 2))
    rule = complete_rule(from_params(params), params, layout, request.defaults, request.preprocessed is not None)
    text = text_of(layout, request)
    check_merging(layout, params)
    trans_path = params.text("transPath") or request.defaults.trans_path
    return Refined(
        task=task_columns(request, rule, text, trans_path),
        datasets=tuple(layout.datasets),
        templates=tuple(layout.templates),
        job_params_template=text,
    )


def check_parent(request: Request) -> None:
    """A task starts when its parent is complete; with noWaitParent it may start before."""
    parent = request.parent
    if parent is None or parent.task_id == request.task_id or parent.progress == "completed":
        return
    if parent.progress == "corrupted":
        what = "does not exist" if parent.status is None else f"is {parent.status}"
        raise CannotRefine(f"The parent task {parent.task_id} {what}, so its outputs will never be made.")
    if not request.params.flag("noWaitParent"):
        raise NotYet(f"The parent task {parent.task_id} is {parent.status}; this task starts when the parent is done.")


def complete_rule(
    rule: SplitRule, params: TaskParams, layout: Layout, defaults: Defaults, preprocessed: bool = False
) -> SplitRule:
    """Add the codes that depend on datasets, sites, steps and the installation."""
    if layout.seed_offset:
        rule = rule.having("RS", layout.seed_offset)
    if layout.event_offset:
        rule = rule.having("FT", layout.event_offset)
    if params.spec("buildSpec") is not None:
        rule = rule.having("UB", 1)
    if params.spec("preproSpec") is not None:
        rule = rule.having("UP", 2 if preprocessed else 1)
    limited = (1 if params.names("includedSite") else 0) + (2 if params.names("excludedSite") else 0)
    if limited:
        rule = rule.having("LS", limited)
    if (params.whole("walltime") or 0) < 0:
        rule = rule.having("LC", 1)
    if params.flag("pushStatusChanges", default=defaults.push_status_changes):
        rule = rule.having("PC", 1)
    takes_ranges = params.flag("fineGrainedProc") or ("ES" in rule and "UC" not in rule)
    if takes_ranges and reads_files(params) and is_own_program(params.text("transPath") or defaults.trans_path):
        # Such a program gets one file with each range, and knows nothing of the files before it.
        rule = rule.having("IF", 1)
    if params.flag("fineGrainedProc"):
        rule = rule.having("ND", 1).having("XJ", 0).having("XA", 1)
    return rule
