"""Rules on storage and on where the input lies."""

from __future__ import annotations

from typing import Final

from brokerage_app.cases.case import Case, GridCase, PlaceCase
from brokerage_app.cases.generic_case import GenericCase
from brokerage_app.cases.production_case import ProductionCase
from brokerage_app.formulas.storage import LEAST_SPACE_GB
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Endpoint

MB_IN_GB: Final = 1024


def storage_space(case: PlaceCase, site: SiteView) -> Skip | None:
    """The default output endpoint has space left; not asked where that is not known."""
    storage = case.storage(site)
    if storage.output_gb is None or storage.output_gb >= case.min_free_gb:
        return None
    return Skip(
        site.name,
        codes.STORAGE_FULL,
        "needs {:.0f} GB of usable space, there are {:.0f} GB at {}",
        (case.min_free_gb, storage.output_gb, storage.output),
    )


def space_of_queue(case: Case, site: SiteView) -> Skip | None:
    """The queue's own number of free space, where it states one, is 200 GB at least."""
    if site.space_gb is None or site.space_gb >= LEAST_SPACE_GB:
        return None
    return Skip(
        site.name, codes.STORAGE_FULL, "needs {} GB of free space, there are {:.0f} GB", (LEAST_SPACE_GB, site.space_gb)
    )


def takes_outputs(case: GenericCase, site: SiteView) -> Skip | None:
    """The storage of the queue takes outputs and has space for them, and so has wherever else outputs of the task go."""
    shut = case.shut
    if not shut.isdisjoint((site.analysis_outputs or site.outputs) if case.analysis else site.outputs):
        if not case.storage(site).write_lan:
            return _not_writable(case, site)
        skip = storage_space(case, site)
        if skip is not None:
            return skip
    named = case.needs.outputs
    if case.needs.unplaced_outputs and not site.written(analysis=case.analysis):
        named = (*named, case.needs.unplaced_outputs)
    for name in named:
        if name not in shut:
            continue
        one = case.grid.endpoints[name]
        activity = "write_lan" if name in site.outputs else "write_wan"
        if not one.is_up(activity):
            if one.closed:
                return _closed(site, one)
            how = "writing" if activity == "write_lan" else "writing from outside"
            says = f"{how} ({activity}) is blacklisted at {{}}, where outputs of the task go"
            return Skip(site.name, codes.OUTPUT_NOT_WRITABLE, says, (name,))
        free = one.usable_gb
        if free is not None and free < case.min_free_gb:
            says = "needs {:.0f} GB of usable space, there are {:.0f} GB at {}, where outputs of the task go"
            return Skip(site.name, codes.STORAGE_FULL, says, (case.min_free_gb, free, name))
    return None


def _not_writable(case: Case, site: SiteView) -> Skip:
    grid = case.grid
    for name in site.outputs:
        if (one := grid.endpoints.get(name)) is not None and one.closed:
            return _closed(site, one)
    return Skip(
        site.name, codes.OUTPUT_NOT_WRITABLE, "writing (write_lan) is blacklisted at {}", (_named(site.outputs),)
    )


def _closed(site: SiteView, one: Endpoint) -> Skip:
    return Skip(site.name, codes.OUTPUT_NOT_WRITABLE, "{1}", (one.name, one.closed))


def input_readable(case: GenericCase, site: SiteView) -> Skip | None:
    """Each input can be read where it lies: over the local network from storage of the queue, else from outside."""
    own = {*site.inputs, *site.outputs, *site.analysis_inputs, *site.analysis_outputs}
    for one in case.unread:
        if any(e.is_up("read_lan" if e.name in own else "read_wan") for e in one.at):
            continue
        here = tuple(e.name for e in one.at if e.name in own)
        if why := case.grid.why_away(e.name for e in one.at):
            return Skip(site.name, codes.INPUT_NOT_READABLE, "the input {} cannot be read{}", (one.name, why))
        if here:
            return Skip(site.name, codes.INPUT_NOT_READABLE, "reading (read_lan) is blacklisted at {}", (_named(here),))
        says = "the input {} is only at {}, where reading from outside (read_wan) is blacklisted"
        return Skip(site.name, codes.SOURCE_NOT_SENDING, says, (one.name, _named(tuple(e.name for e in one.at))))
    return None


def direct_access(case: GridCase, site: SiteView) -> Skip | None:
    """A task that only reads directly needs a queue that does."""
    if site.direct_io or site.direct_io_only:
        return None
    return Skip(site.name, codes.NO_DIRECT_ACCESS, "the task can only read its input directly, the site copies it")


def storage_up(case: GridCase, site: SiteView) -> Skip | None:
    """The activities that jobs need are up at one endpoint at least.

    Reading and writing from within are needed everywhere; to take input from outside where the queue is a satellite
    or lacks input; to send outputs from satellites.
    """
    storage = case.storage(site)
    if not storage.read_lan:
        if why := case.grid.why_away((*storage.inputs, *site.outputs)):
            return Skip(site.name, codes.INPUT_NOT_READABLE, "inputs cannot be read{}", (why,))
        return Skip(
            site.name, codes.INPUT_NOT_READABLE, "reading (read_lan) is blacklisted at {}", (_named(storage.inputs),)
        )
    if not storage.write_lan:
        return _not_writable(case, site)
    satellite = case.is_satellite(site)
    if not storage.write_wan and (satellite or _lacks_input(case, site)):
        says = "writing from outside (write_wan) is blacklisted at {}"
        return Skip(site.name, codes.STORAGE_NOT_RECEIVING, says, (_named(storage.inputs),))
    if satellite and not storage.read_wan:
        says = "reading from outside (read_wan) is blacklisted at {}"
        return Skip(site.name, codes.STORAGE_NOT_SENDING, says, (_named(site.outputs),))
    return None


def source_sends(case: ProductionCase, site: SiteView) -> Skip | None:
    """A satellite that lacks input needs a storage that can send it."""
    unsent = case.unsent
    if unsent is None or not case.is_satellite(site) or not _lacks_input(case, site):
        return None
    return Skip(
        site.name,
        codes.SOURCE_NOT_SENDING,
        "{} is complete at {:endpoint|endpoints}, none of which sends it to satellites",
        (unsent.data.name, len(unsent.complete)),
    )


def little_input_missing(case: ProductionCase, site: SiteView) -> Skip | None:
    """Not too much input would have to be moved, where what is on tape counts as there. What is read from afar stays there."""
    return _too_much_missing(case, site, with_tape=True)


def missing_but_for_tape(case: ProductionCase, site: SiteView) -> Skip | None:
    """The same, where only what is on disk counts."""
    return _too_much_missing(case, site, with_tape=False)


def _too_much_missing(case: ProductionCase, site: SiteView, *, with_tape: bool) -> Skip | None:
    inputs, settings = case.inputs, case.settings
    if case.needs.direct_io_wan and case.needs.reads_afar(site):
        return None
    here = inputs.at(case.storage(site).inputs)
    size_mb = int(inputs.size_mb - (here.any_mb if with_tape else here.disk_mb))
    files = inputs.files - (here.any_files if with_tape else here.disk_files)
    most_mb = settings.size_cutoff_to_move_input * MB_IN_GB
    if size_mb > most_mb:
        return Skip(
            site.name,
            codes.TOO_MUCH_INPUT_MISSING,
            "{1} MB of the input ({2:file|files}) are missing there, the limit is {0:.0f} MB",
            (most_mb, size_mb, files),
        )
    if files > settings.num_cutoff_to_move_input:
        return Skip(
            site.name,
            codes.TOO_MUCH_INPUT_MISSING,
            "{1:input file is|input files are} missing there ({2} MB), the limit is {0}",
            (settings.num_cutoff_to_move_input, files, size_mb),
        )
    return None


def _lacks_input(case: GridCase, site: SiteView) -> bool:
    return case.inputs.files > 0 and case.inputs.at(case.storage(site).inputs).any_files < case.inputs.files


def local_data_only(case: GridCase, site: SiteView) -> Skip | None:
    """A queue that never gets input from elsewhere has all of it."""
    if not site.only_local_data:
        return None
    inputs = case.inputs
    here = inputs.at(case.storage(site).inputs)
    if here.disk_files >= inputs.files and here.disk_mb >= inputs.size_mb:
        return None
    return Skip(
        site.name,
        codes.INPUT_NOT_LOCAL,
        "needs {:input file|input files}, {:is|are} there ({:.0f} of {:.0f} MB)",
        (inputs.files, here.disk_files, here.disk_mb, inputs.size_mb),
    )


def _named(endpoints: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(endpoints[:most])
    return f"{shown} and {len(endpoints) - most} more" if len(endpoints) > most else shown
