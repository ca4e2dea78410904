"""What the storage of a queue can do: worked out once for a grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from brokerage_app.formulas.queues_with_input import is_whole
from brokerage_app.vocabulary.needs import InputData
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.snapshot import Endpoint, Grid

DATADISK: Final = "DATADISK"


@dataclass(frozen=True, slots=True)
class Storage:
    """The endpoints of a queue for one kind of jobs. A queue whose endpoints nobody has described can do everything.

    read_lan    some input endpoint can be read over the local network; `write_lan`: some output endpoint can be written
    write_wan   some input endpoint takes files from outside; `read_wan`: some output endpoint sends them
    site        the place of the default output endpoint
    output, input            names of the default endpoints; "" is none
    output_gb, input_gb      space that can be used there; None is not known
    inputs      names of the endpoints from which jobs read
    """

    site: str
    inputs: tuple[str, ...] = ()
    output: str = ""
    input: str = ""
    output_gb: float | None = None
    input_gb: float | None = None
    read_lan: bool = True
    write_lan: bool = True
    write_wan: bool = True
    read_wan: bool = True
    has_output: bool = False


def storage_of(grid: Grid, site: SiteView, *, analysis: bool = False) -> Storage:
    """The storage of a queue for production jobs, or for analysis jobs, which may have endpoints of their own."""
    known = storages(grid, analysis=analysis)
    found = known.get(site.name)
    if found is not None and _same(found[0], site):
        storage = found[1]
    else:
        storage = _analysis_storage(grid, site) if analysis else _production_storage(grid, site)
    known[site.name] = (site, storage)
    return storage


def storages(grid: Grid, *, analysis: bool = False) -> dict[str, tuple[SiteView, Storage]]:
    """What is known already: storage by the name of the queue, with the view of the queue for which it was worked out."""
    found: dict[str, tuple[SiteView, Storage]] = grid.derived.setdefault(("storage", analysis), {})
    return found


def _same(one: SiteView, other: SiteView) -> bool:
    """Whether two views of a queue differ in counts at most."""
    return (
        one.inputs is other.inputs
        and one.outputs is other.outputs
        and one.analysis_inputs is other.analysis_inputs
        and one.analysis_outputs is other.analysis_outputs
        and one.site == other.site
    )


def _production_storage(grid: Grid, site: SiteView) -> Storage:
    """Of endpoints of several types only those of the type DATADISK count for what is up."""
    return _made(grid, site, site.inputs, site.outputs, only_data=True)


def _analysis_storage(grid: Grid, site: SiteView) -> Storage:
    return _made(
        grid, site, site.analysis_inputs or site.inputs, site.analysis_outputs or site.outputs, only_data=False
    )


def _made(grid: Grid, site: SiteView, inputs: tuple[str, ...], outputs: tuple[str, ...], *, only_data: bool) -> Storage:
    output = grid.endpoints.get(outputs[0]) if outputs else None
    first = grid.endpoints.get(inputs[0]) if inputs else None
    reads, writes = _known(grid, inputs, only_data=only_data), _known(grid, outputs, only_data=only_data)
    return Storage(
        site=grid.storage_site(site),
        inputs=inputs,
        output=outputs[0] if outputs else "",
        input=inputs[0] if inputs else "",
        output_gb=output.usable_gb if output is not None else None,
        input_gb=first.usable_gb if first is not None else None,
        read_lan=_any_up(reads, "read_lan"),
        write_lan=_any_up(writes, "write_lan"),
        write_wan=_any_up(reads, "write_wan"),
        read_wan=_any_up(writes, "read_wan"),
        has_output=bool(outputs),
    )


def _known(grid: Grid, names: Sequence[str], *, only_data: bool) -> list[Endpoint]:
    found = [grid.endpoints[name] for name in names if name in grid.endpoints]
    return [one for one in found if one.type == DATADISK] or found if only_data else found


def _any_up(endpoints: Sequence[Endpoint], activity: str) -> bool:
    return not endpoints or any(endpoint.is_up(activity) for endpoint in endpoints)


LEAST_SPACE_GB: Final = 200


def shut(grid: Grid, min_free_gb: float) -> frozenset[str]:
    """The endpoints to which something cannot be written now, or that have less space left than that."""
    known: frozenset[str] | None = grid.derived.get(("shut", min_free_gb))
    if known is None:
        known = grid.derived["shut", min_free_gb] = frozenset(
            one.name
            for one in grid.endpoints.values()
            if not (one.is_up("write_lan") and one.is_up("write_wan"))
            or (one.usable_gb is not None and one.usable_gb < min_free_gb)
        )
    return known


class Held(NamedTuple):
    """A dataset, and the storage that has it."""

    name: str
    at: tuple[Endpoint, ...]


def hard_to_read(inputs: Iterable[InputData], grid: Grid) -> tuple[Held, ...]:
    """The datasets that not every queue can read now. Storage that nobody has described can be read from everywhere."""
    found = []
    for one in inputs:
        whole = [name for name, replica in one.replicas.items() if is_whole(one, replica)]
        names = whole or [name for name, replica in one.replicas.items() if replica.files]
        at = tuple(grid.endpoints[name] for name in names if name in grid.endpoints)
        if names and len(at) == len(names) and not any(e.is_up("read_lan") and e.is_up("read_wan") for e in at):
            found.append(Held(one.name, at))
    return tuple(found)
