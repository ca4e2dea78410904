"""Names of things that the site keeps: queues, clouds, nuclei, storage, shares, transforms. One that is not there is refused.

A misspelt name would not fail: the task would run elsewhere, or wait for ever for a queue that nobody will ever set up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Protocol

from jedisite.vocabulary.words import nearest, plural
from tasks_app.params.faults import Faults, join_path, shown
from tasks_app.params.kinds import names_of
from tasks_app.params.rules import output_items
from tasks_app.params.schema import TaskParams

AUTO: Final = "AUTO"
"""Among sites: the broker's own choice, too. PanDA's clients send it."""
EVERYWHERE: Final = frozenset({"WORLD", "ANY"})
"""Clouds that stand for all, in any case."""
NUCLEUS: Final = "nucleus:"
MOST_PATTERNS: Final = 200
MOST_LISTED: Final = 12
MOST_TOLD: Final = 10
"""So many unknown names of a list are told one by one: looking for near ones among thousands takes milliseconds each."""
_WILD: Final = frozenset("*?[")
FETCHED: Final = ("https://", "http://")
STEPS: Final = ("buildSpec", "mergeSpec", "preproSpec", "esmergeSpec")


class Known(Protocol):
    """What there is at this site. Each is read when it is asked for."""

    @property
    def queues(self) -> Collection[str]: ...
    @property
    def sites(self) -> Mapping[str, Collection[str]]:
        """Queues of each site."""

    @property
    def clouds(self) -> Collection[str]: ...
    @property
    def nuclei(self) -> Collection[str]: ...
    @property
    def endpoints(self) -> Mapping[str, str]:
        """The site of each storage endpoint."""

    @property
    def transforms(self) -> Collection[str]: ...
    @property
    def labels(self) -> Collection[str]:
        """Values of prodSourceLabel: those that the rules of the site tell apart, and those of its work queues."""

    @property
    def transform_urls(self) -> Sequence[str]:
        """What addresses of the site's transforms begin with: those that it serves itself first."""

    def work_queues(self, vo: str | None, label: str) -> Collection[str]:
        """Names of the work queues of a VO and label; the site's own VO when it is None."""

    def share_fault(self, share: str) -> str | None:
        """Why tasks cannot have this share; None when they can."""

    def unknown_tasks(self, ids: Collection[int]) -> Collection[int]:
        """Those of these that are no tasks."""


def no_such(kind: str, name: str, known: Collection[str], *, hint: bool = True) -> str:
    """The sentence on a name that is not there: one that is near it, or those that there are if they are few. Without `hint`
    it is compared with none.

    >>> no_such("queue", "CERM", ["CERN", "BNL"])
    "There is no queue 'CERM'. Did you mean CERN?"
    """
    said = f"There is no {kind} {shown(name)}"
    if not known:
        return f"{said}: this site has none."
    if not hint:
        return f"{said}."
    if near := nearest(name, known):
        return f"{said}. Did you mean {near}?"
    listed = sorted(known)[:MOST_LISTED]
    more = len(known) - len(listed)
    return f"{said}; this site has {', '.join(listed)}" + (f" and {more} more." if more else ".")


def check_params(params: TaskParams, known: Known, faults: Faults) -> None:
    """Add a fault for every name in a submission that is none of this site's."""
    check_places(params.raw, known, faults)
    share, queue = params.text("gshare"), params.text("workQueueName")
    fault = known.share_fault(share) if share else None
    if fault:
        faults.add("gshare", "one of", fault)
    if queue:
        queues = known.work_queues(params.vo, params.prod_source_label)
        if queue not in queues:
            faults.add("workQueueName", "known", _no_work_queue(queue, queues, params))
    _check_endpoint(params.text("destination"), "destination", known, faults)
    for item in (*params.items, *params.logs, *params.merge_logs):
        _check_endpoint(item.text("destination"), join_path(item.where, "destination"), known, faults)
    for item in output_items(params):
        if item.file_name in known.transforms:
            says = f"{shown(item.file_name)} is reserved for the transform in a job's folder; choose another name for the output."
            faults.add(join_path(item.where, "value"), "reserved", says)
    _check_older(params, known, faults)
    for where, name in _transforms(params):
        if (absent := _absent(name, params, known)) is not None:
            faults.add(where, "known", no_such("transform", absent, known.transforms))
        elif not is_local(name) and not name.startswith(FETCHED):
            faults.add(
                where, "address", f"Pilots fetch transforms from {' or '.join(FETCHED)} only, not {shown(name)}."
            )
    _check_labels(params, known, faults)


def _absent(transform: str, params: TaskParams, known: Known) -> str | None:
    """The name of a transform that this site should have and has not; None when it has it, or it comes from elsewhere.

    Below the other addresses that it serves its own from there may be more, unless the name is near one of these.
    """
    own, *others = known.transform_urls
    name = transform.removeprefix(own) if transform.startswith(own) else transform
    if not is_local(name):
        below = [name.removeprefix(url) for url in others if name.startswith(url)]
        return next((one for one in below if one not in known.transforms and nearest(one, known.transforms)), None)
    return None if name in known.transforms or _comes_with(params, transform) else name


def _check_labels(params: TaskParams, known: Known, faults: Faults) -> None:
    if params.prod_source_label not in known.labels:
        faults.add("prodSourceLabel", "known", no_such("source label", params.prod_source_label, known.labels))


def _no_work_queue(name: str, known: Collection[str], params: TaskParams) -> str:
    of = f"label {params.prod_source_label}" + (f" and VO {params.vo}" if params.vo else "")
    if not known:
        return f"There is no work queue {shown(name)}: this site has none for tasks of {of}."
    return f"{no_such('work queue', name, known)} Only work queues for {of} can be named."


def named_sites(site: str | None) -> str | None:
    """A comma text of sites without those that stand for the broker's choice; None when none is left."""
    return ",".join(name for name in names_of(site) if not _is_auto(name)) or None


def check_places(given: Mapping[str, Any], known: Known, faults: Faults, where: str = "", *, auto: bool = True) -> None:
    """The same for places alone, in a submission or in what is to be changed on a task.

    `where` leads to `given`. `auto`: a site may be left to the broker.
    """
    unknown = [
        name for name in names_of(given.get("site")) if not (auto and _is_auto(name)) and name not in known.queues
    ]
    _tell_unknown(unknown, join_path(where, "site"), known, faults)
    for key in ("includedSite", "excludedSite"):
        _check_patterns(names_of(given.get(key)), join_path(where, key), known, faults)
    cloud = given.get("cloud")
    if cloud and not given.get("cloudAsVO") and cloud.upper() not in EVERYWHERE and cloud not in known.clouds:
        faults.add(join_path(where, "cloud"), "known", no_such("cloud", cloud, known.clouds))
    nucleus = given.get("nucleus")
    if nucleus and nucleus not in known.nuclei:
        faults.add(join_path(where, "nucleus"), "known", no_such("nucleus", nucleus, known.nuclei))


def foreign_transforms(params: TaskParams, known: Known) -> list[str]:
    """Sentences on transforms that do not come from this site: allowed, and worth saying."""
    found = []
    for where, name in _transforms(params):
        if is_local(name):
            if name not in known.transforms:
                says = "is not served by this site; it must come with the task's software or input"
                found.append(f"{where}: {shown(name)} {says}.")
        elif not any(name == f"{begin}{one}" for begin in known.transform_urls for one in known.transforms):
            says = "is outside this site; the site's own pilots fetch transforms only from this site"
            found.append(f"{where}: {shown(name)} {says}.")
    return found


def no_place_left(params: TaskParams, known: Known) -> list[str]:
    """A sentence when the lists of a task exclude all of the queues that it may use: allowed, as there may be others one day."""
    if not (params.names("excludedSite") and known.queues):
        return []
    excluded, wanted = _named(params.names("excludedSite"), known), params.names("includedSite")
    wanted = () if any(map(_is_auto, wanted)) else tuple(name for name in wanted if name.strip())
    left = (_named(wanted, known) if wanted else set(known.queues)) - excluded
    if left:
        return []
    which = "of includedSite" if wanted else "of this site"
    return [f"excludedSite excludes every queue {which}: the task waits until another queue exists."]


def _named(names: Iterable[str], known: Known) -> set[str]:
    """The queues of these names and patterns."""
    given = set(names)
    patterns = [name for name in given if not _WILD.isdisjoint(name)]
    return given.intersection(known.queues) | {q for q in known.queues if any(fnmatchcase(q, one) for one in patterns)}


def is_local(transform: str) -> bool:
    return "://" not in transform


def _check_patterns(names: Iterable[str], where: str, known: Known, faults: Faults) -> None:
    patterns, unknown = 0, list[str]()
    for name in names:
        if not name.strip() or _is_auto(name) or name in known.queues:
            continue
        if _WILD.isdisjoint(name):
            unknown.append(name)
            continue
        patterns += 1
        if patterns > MOST_PATTERNS:
            faults.add(where, "length", f"At most {MOST_PATTERNS} patterns are allowed.")
            return
        if not any(fnmatchcase(queue, name) for queue in known.queues):
            sentence = f"No queue matches {shown(name)}; * stands for any text, ? for one character."
            faults.add(
                where, "known", sentence if known.queues else f"No queue matches {shown(name)}: this site has none."
            )
    _tell_unknown(unknown, where, known, faults)


def _tell_unknown(names: Sequence[str], where: str, known: Known, faults: Faults) -> None:
    for name in names[:MOST_TOLD]:
        faults.add(where, "known", _no_queue(name, known))
    if len(names) > MOST_TOLD:
        faults.add(
            where,
            "known",
            f"{plural(len(names) - MOST_TOLD, 'more name matches', 'more names match')} no queue.",
        )


def _no_queue(name: str, known: Known) -> str:
    site = known.endpoints.get(name)
    queues = sorted(known.sites.get(site or name, ()))
    few = ", ".join(queues[:MOST_LISTED]) + (" …" if len(queues) > MOST_LISTED else "")
    if site is not None:
        near = f"the queues of its site are {few}" if queues else "its site has no queue"
        return f"{shown(name)} is a storage endpoint and not a queue; {near}."
    if queues:
        return f"{shown(name)} is a site and not a queue; its queues are {few}."
    return no_such("queue", name, known.queues)


def _is_auto(name: str) -> bool:
    return name.upper() == AUTO


def _check_endpoint(name: str | None, where: str, known: Known, faults: Faults) -> None:
    if not name or name in known.endpoints:
        return
    if name.startswith(NUCLEUS) and name.removeprefix(NUCLEUS) in known.nuclei:
        return
    faults.add(where, "known", no_such("storage endpoint", name, known.endpoints, hint=faults.hints))


def _check_older(params: TaskParams, known: Known, faults: Faults) -> None:
    ids = [int(name) for name in params.names("skipFilesUsedBy")]
    too_large = [number for number in ids if number >= 2**63]
    unknown = too_large or sorted(known.unknown_tasks(ids)) if ids else []
    if unknown:
        faults.add("skipFilesUsedBy", "known task", f"There is no task {', '.join(map(str, unknown[:5]))}.")


def _transforms(params: TaskParams) -> list[tuple[str, str]]:
    """Where each transform is named, and its name."""
    found = [("transPath", params.text("transPath"))]
    found += [(join_path(step, "transPath"), (params.spec(step) or {}).get("transPath")) for step in STEPS]
    return [(where, name) for where, name in found if name]


def _comes_with(params: TaskParams, name: str) -> bool:
    """Whether a program comes from the release in which the task runs, or is listed among the files that it reads."""
    if params.text("transHome"):
        return True
    files = (file for item in params.items for file in _listed(item.raw.get("files")))
    return any(name == (file.get("lfn") if isinstance(file, dict) else file) for file in files)


def _listed(files: Any) -> Iterable[Any]:
    return files if isinstance(files, list) else ()
