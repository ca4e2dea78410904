"""Rules on the nucleus at which the outputs of a task are gathered (JEDI brokerage document, task brokerage)."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.nucleus_case import GB_A_TB, MB_A_GB, OUTPUT_ACTIVITY, NucleusCase, takes_chain
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Nucleus

ACTIVE: Final = "ACTIVE"

ORDER: Final = (
    codes.NUCLEUS_INACTIVE,
    codes.NUCLEUS_BACKLOG,
    codes.NUCLEUS_NO_STORAGE,
    codes.NUCLEUS_READ_DOWN,
    codes.NUCLEUS_WRITE_DOWN,
    codes.NUCLEUS_SPACE,
    codes.NUCLEUS_NO_QUEUE,
    codes.NUCLEUS_INPUT_SIZE,
    codes.NUCLEUS_INPUT_FILES,
    codes.NUCLEUS_FULL_CHAIN,
)
"""Where each reason stands in funnels, and which of several counts as the last. Each that a rule gives has its place."""


def active(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """Only nuclei that are active."""
    if nucleus.state == ACTIVE:
        return None
    return Skip(nucleus.name, codes.NUCLEUS_INACTIVE, "the nucleus's state is {}", (nucleus.state or "not set",))


def no_backlog(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """Not too many output files, from everywhere, wait for their transfer to the nucleus."""
    cap = case.settings.queued_cap
    queued = case.grid.to_nucleus.get(nucleus.name, {}).get(OUTPUT_ACTIVITY, 0)
    if queued <= cap:
        return None
    says = "{1:output file is|output files are} on the way to it, the limit is {0}"
    return Skip(nucleus.name, codes.NUCLEUS_BACKLOG, says, (cap, queued))


def has_storage(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """There is a storage that fits the token of each output."""
    if not nucleus.outputs:
        return Skip(nucleus.name, codes.NUCLEUS_NO_STORAGE, "it has no storage to write to")
    for output, endpoint in case.stored[nucleus.name]:
        if endpoint is None:
            return Skip(
                nucleus.name,
                codes.NUCLEUS_NO_STORAGE,
                "none of its storages ({}) matches the token {} of {}",
                (len(nucleus.outputs), output.token or "that is empty", output.name or "an output"),
            )
    return None


def can_be_read(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """The storages of its outputs can be read from outside."""
    return _is_up(case, nucleus, "read_wan", codes.NUCLEUS_READ_DOWN)


def can_be_written(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """The storages of its outputs can be written from outside."""
    return _is_up(case, nucleus, "write_wan", codes.NUCLEUS_WRITE_DOWN)


def _is_up(case: NucleusCase, nucleus: Nucleus, activity: str, code: str) -> Skip | None:
    for _, endpoint in case.stored[nucleus.name]:
        if endpoint is not None and not endpoint.is_up(activity):
            return Skip(nucleus.name, code, "{} of {} is {}", (activity, endpoint.name, endpoint.states.get(activity)))
    return None


def has_space(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """Enough space remains on the storages of its outputs once the work that the nucleus has already is done."""
    least = case.settings.disk_threshold_tb * GB_A_TB
    for _, endpoint in case.stored[nucleus.name]:
        if endpoint is None:
            continue
        left = case.left_gb(nucleus.name, endpoint)
        if left >= least:
            continue
        usable, projected = endpoint.usable_gb, case.projected_gb(nucleus.name)
        return Skip(
            nucleus.name,
            codes.NUCLEUS_SPACE,
            "{0:.0f} GB must stay free at {2}, {1:.0f} GB would: {3} GB are usable, outputs of its tasks will take {4} GB",
            (least, left, endpoint.name, "no known" if usable is None else round(usable), projected),
        )
    return None


def can_run(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """At least one queue of the nucleus would be chosen for the jobs."""
    if case.able is None or nucleus.name in case.able:
        return None
    queues = {case.grid.sites[name].queue for name in nucleus.queues if name in case.grid.sites}
    words = case.queue_words.get(nucleus.name, "")
    says = "at least {} of its queues must accept the jobs, {} of {} do" + (": {}" if words else "")
    return Skip(nucleus.name, codes.NUCLEUS_NO_QUEUE, says, (1, 0, len(queues), *filter(None, (words,))))


def has_input(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """A good part of the input, by size and by number of files, is at the nucleus already, on disk or tape.

    Small inputs need not be. With prestaging one file is enough, since the others will be brought from tape.
    """
    local, settings = case.local[nucleus.name], case.settings
    if case.needs.prestaging and local.any_files > 0:
        return None
    percent = settings.input_size_fraction_percent
    if case.input_gb > settings.input_size_threshold_gb and 100 * local.any_mb < percent * case.inputs.size_mb:
        return Skip(
            nucleus.name,
            codes.NUCLEUS_INPUT_SIZE,
            "{0:.1f} GB of the input must be there ({2:g} % of {3:.1f} GB), {1:.1f} GB are",
            (percent / 100 * case.input_gb, local.any_mb / MB_A_GB, percent, case.input_gb),
        )
    percent = settings.input_num_fraction_percent
    if case.inputs.files > settings.input_num_threshold and 100 * local.any_files < percent * case.inputs.files:
        return Skip(
            nucleus.name,
            codes.NUCLEUS_INPUT_FILES,
            "{0:g} of {3:input file|input files} must be there ({2:g} %), {1:is|are}",
            (percent / 100 * case.inputs.files, local.any_files, percent, case.inputs.files),
        )
    return None


def fits_chain(case: NucleusCase, nucleus: Nucleus) -> Skip | None:
    """Whole chains of tasks stay at nuclei that keep them, children with their parents; others keep away from some."""
    full_chain = case.needs.full_chain
    if case.parent_nucleus:
        if nucleus.name == case.parent_nucleus:
            return None
        return Skip(
            nucleus.name, codes.NUCLEUS_FULL_CHAIN, "the chain of the parent task stays at {}", (case.parent_nucleus,)
        )
    if full_chain in ("only", "require"):
        if takes_chain(full_chain, nucleus.bare):
            return None
        says = "the task has fullChain {}, the nucleus has bareNucleus {}"
        return Skip(nucleus.name, codes.NUCLEUS_FULL_CHAIN, says, (full_chain, nucleus.bare or "not set"))
    # Without a parent that stays at a nucleus, "capable" asks for nothing.
    if nucleus.bare == "only":
        return Skip(nucleus.name, codes.NUCLEUS_FULL_CHAIN, "the nucleus takes whole chains of tasks only")
    return None
