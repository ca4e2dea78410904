"""What a queue has of software and hardware, read once from what it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from brokerage_app.formulas import hardware
from brokerage_app.formulas.hardware import Hardware
from brokerage_app.vocabulary.gpus import GpuRow

_ALL_CVMFS: Final = "/cvmfs"
ANYTHING: Final = "any"
_NO_HARDWARE: Final = Hardware()


@dataclass(frozen=True, slots=True)
class SiteSoftware:
    """What a queue has, ready to be asked. `takes_any`: its `releases` are ANY; `published`: they are AUTO and known.

    unread           something is published, but the queue's `releases` say that it does not count

    platforms        `cmtconfigs` in the order of publication
    containers       beginnings of the paths of images that the queue takes; `any_container`: every image
    tags             (platform, project, release) of each tag
    tag_containers   names of images that are published as tags, with the paths that they stand for
    """

    takes_any: bool = False
    published: bool = False
    unread: bool = False
    platforms: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    any_container: bool = False
    cvmfs: frozenset[str] = frozenset()
    tags: frozenset[tuple[str, str, str]] = frozenset()
    tag_containers: frozenset[str] = frozenset()
    hardware: Hardware = _NO_HARDWARE
    _platforms: frozenset[str] = field(init=False, repr=False, compare=False)
    _literal_any: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_platforms", frozenset(self.platforms))
        object.__setattr__(self, "_literal_any", ANYTHING in self.containers)


def parse_published(
    published: object,
    *,
    releases: Iterable[str] = ("AUTO",),
    gpu_rows: Iterable[GpuRow] = (),
    cpu_levels: Iterable[tuple[str, float]] = (),
) -> SiteSoftware:
    """What a queue has, from its `releases`, its published JSON (None: not known) and monitoring of its nodes.

    What is published counts where `releases` have AUTO among them, or say nothing.

    Never raises: parts that are not of the expected form count as not published.
    """
    wanted = frozenset(releases)
    is_known = isinstance(published, Mapping)
    if not isinstance(published, Mapping) or (wanted and "AUTO" not in wanted):
        known = Hardware(gpu_rows=tuple(gpu_rows), cpu_levels=tuple(cpu_levels))
        return SiteSoftware(takes_any="ANY" in wanted, unread=is_known, hardware=known)
    containers = _texts(published.get("containers"))
    releases_of, containers_of = _of_tags(published.get("tags"))
    return SiteSoftware(
        takes_any="ANY" in wanted,
        published=True,
        platforms=_texts(published.get("cmtconfigs")),
        containers=containers,
        any_container=ANYTHING in containers or _ALL_CVMFS in containers,
        cvmfs=frozenset(_texts(published.get("cvmfs"))),
        tags=releases_of,
        tag_containers=containers_of,
        hardware=hardware.parse_architectures(published.get("architectures"), gpu_rows, cpu_levels),
    )


PARTS: Final = ("cmtconfigs", "containers", "cvmfs", "tags", "architectures")


def faults_of_published(published: object) -> list[str]:
    """What is wrong with the JSON of a queue for whoever writes it, as sentences; `parse_published` passes over it."""
    if not isinstance(published, Mapping):
        return [f"a map with any of {', '.join(PARTS)}; this is {type(published).__name__}"]
    unknown = sorted(str(name) for name in published if name not in PARTS)
    faults = [f"{name} is not known; there are {', '.join(PARTS)}" for name in unknown]
    for name in ("cmtconfigs", "containers", "cvmfs"):
        value = published.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            faults.append(f"{name} is a list of names")
    for name in ("tags", "architectures"):
        value = published.get(name, [])
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            faults.append(f"{name} is a list of maps")
    return faults


def parse_sources(tags: object) -> dict[str, tuple[str, ...]]:
    """Paths by the logical name of a container, from the tags of the queue ALL; pass it to `accepts`."""
    found: dict[str, tuple[str, ...]] = {}
    for tag in _tags(tags):
        name = _word(tag, "container_name")
        if name:
            found[name] = found.get(name, ()) + _texts(tag.get("sources"))
    return found


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()


def _of_tags(value: object) -> tuple[frozenset[tuple[str, str, str]], frozenset[str]]:
    """(platform, project, release) of tags, and the images that they name. A site may have hundreds."""
    releases: set[Any] = set()
    containers: set[str] = set()
    for tag in _tags(value):
        get = tag.get
        try:
            releases.add((get("cmtconfig"), get("project"), get("release")))
        except TypeError:
            continue  # a list where a name should be; whatever else is no text is never asked for
        if get("container_name"):
            containers.add(_word(tag, "container_name"))
        if get("sources"):
            containers.update(_texts(tag["sources"]))
    return frozenset(releases), frozenset(containers)


def _tags(value: object) -> list[Mapping[str, Any]]:
    return [tag for tag in value if isinstance(tag, Mapping)] if isinstance(value, list | tuple) else []


def _word(tag: Mapping[str, Any], key: str) -> str:
    value = tag.get(key)
    return value if isinstance(value, str) else ""
