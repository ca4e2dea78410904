"""Whether a queue has the software that a task runs: release, platform, container, and the hardware for it.

The rules are those of the JEDI brokerage document for queues that publish what they have (`releases` AUTO, or nothing
said there); queues with `releases` ANY take everything that asks for no special hardware. Both sides are prepared once,
`needs_of_*` for a task and `parse_published` for a queue; `accepts` then only looks up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from brokerage_app.formulas import architecture, hardware
from brokerage_app.formulas.architecture import ArchitectureError, Platform
from brokerage_app.formulas.published_software import ANYTHING, SiteSoftware
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Listed, Skip
from jedisite.vocabulary.patterns import compiled, fault_of

Kind = Literal["release", "nightly", "standalone"]
"""`standalone` is software that comes with the task, so that no release of the experiment is needed."""

_THREE_NUMBERS: Final = re.compile(r"-\d+\.\d+\.\d+$")
_TWO_NUMBERS: Final = re.compile(r"-\d+\.\d+$")
_NIGHTLY: Final = re.compile(r"rel_\d+(?:\n|$)|\d{4}-\d{2}-\d{2}T\d{4}$")
_NIGHTLY_WITH_DASHES: Final = re.compile(r"rel[-_]\d+(?:\n|$)|\d{4}-\d{2}-\d{2}T\d{4}$")
_SIGNS: Final = frozenset("*?[](){}|^$\\")
"""A name of a platform has none of them, but it may have dots and pluses (gcc13+cuda, an image after the plus)."""
ANALYSIS_HOME: Final = "AnalysisTransforms"
_NO_PLATFORM: Final = Platform()

Release = tuple[str, str]
"""Project and version, such as ("Athena", "21.0.38")."""


@dataclass(frozen=True, slots=True)
class SoftwareNeeds:
    """What a task runs. Make it with `needs_of_production` or `needs_of_analysis`.

    releases    any of them will do; empty for nightlies and software of the task's own
    fault       a sentence when the architecture cannot be understood: then no queue will do
    is_asked    False when the task leaves everything open
    """

    kind: Kind
    releases: tuple[Release, ...] = ()
    platform: Platform = _NO_PLATFORM
    container: str = ""
    only_tags: bool = False
    fault: str = ""
    is_asked: bool = True
    _pattern_fault: str = field(init=False, repr=False, compare=False)
    _is_pattern: bool = field(init=False, repr=False, compare=False)
    _only_hardware: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = self.platform.sw_platform
        fault = fault_of(name)
        only_hardware = self.kind == "standalone" and not name and not self.container
        object.__setattr__(self, "_pattern_fault", fault)
        is_pattern = ".+" in name or not _SIGNS.isdisjoint(name)
        object.__setattr__(self, "_is_pattern", is_pattern and not fault)
        object.__setattr__(self, "_only_hardware", only_hardware)

    @property
    def release(self) -> str:
        """For people, such as "Athena 21.0.38"."""
        named = " or ".join(f"{project} {version}" for project, version in self.releases)
        return named or ("a nightly" if self.kind == "nightly" else "its own software")


def needs_of_production(
    trans_home: str | None, text: str | None, *, container: str | None = None, only_tags: bool = False
) -> SoftwareNeeds:
    """Needs of a production task from its transformation home, `architecture` and `container_name`.

    Without a home nothing of software is asked, and hardware only where the task asks for it in so many words.
    """
    home = trans_home or ""
    if not home:
        needs = _needs("standalone", (), text, None, False)
        hardware_alone = replace(needs.platform, sw_platform="", base_platform="")
        return replace(needs, platform=hardware_alone, is_asked=bool(needs.fault) or needs.platform.asks_hardware)
    if _NIGHTLY.search(home) and not _THREE_NUMBERS.search(home):
        return _needs("nightly", (), text, container, only_tags)
    project, _, version = home.partition("-")
    return _needs("release", ((project, version.partition("-")[0]),), text, container, only_tags)


def needs_of_analysis(
    trans_home: str | None,
    trans_uses: str | None,
    text: str | None,
    *,
    container: str | None = None,
    only_tags: bool = False,
) -> SoftwareNeeds:
    """Needs of an analysis task, whose home is `AnalysisTransforms-project_version` and whose uses are `Atlas-version`.

    Of a home such as `Athena-24.0.1` project and version are read as in production; the rules of analysis have no words for it.
    A home of three numbers together with uses that name no release of two numbers is a plain release with a cache on it.
    """
    rest = re.sub("^[^-]+-*", "", trans_home or "").replace("_", "-")
    of_base, nightly = _THREE_NUMBERS.search(rest) is not None, _NIGHTLY_WITH_DASHES.search(rest) is not None
    cut = rest.split("-")
    own: tuple[Release, ...] = ((cut[0], cut[1]),) if len(cut) == 2 else ()
    if rest and not nightly and not of_base and len(cut) >= 2:
        return _needs("release", ((cut[0], cut[1]),), text, container, only_tags)
    if rest and not nightly and len(cut) == 1 and not (trans_home or "").startswith(ANALYSIS_HOME):
        return needs_of_production(trans_home, text, container=container, only_tags=only_tags)
    uses_two = trans_uses is not None and _TWO_NUMBERS.search(trans_uses) is not None
    if (not rest and trans_uses) or (of_base and not uses_two):
        base: tuple[Release, ...] = (("AtlasOffline", trans_uses.split("-")[-1]),) if trans_uses else ()
        return _needs("release", base + own, text, container, only_tags)
    return _needs("nightly" if rest else "standalone", (), text, container, only_tags)


def needs_of_any(
    trans_home: str, trans_uses: str, text: str, *, container: str = "", only_tags: bool = False
) -> SoftwareNeeds:
    """Needs of a task of whatever kind: a release where it names one, a container, and hardware that it asks for.

    A task that names neither release nor container brings its software: no queue has to publish any for it, and its
    platform is only a word to itself.
    """
    if trans_home and not trans_home.startswith(ANALYSIS_HOME):
        return needs_of_production(trans_home, text, container=container, only_tags=only_tags)
    needs = needs_of_analysis(trans_home, trans_uses, text, container=container, only_tags=only_tags)
    if needs.kind != "standalone":
        return needs
    hardware_alone = replace(needs.platform, sw_platform="", base_platform="")
    is_asked = bool(needs.fault) or bool(container) or needs.platform.asks_hardware
    return replace(needs, platform=hardware_alone, is_asked=is_asked)


def _needs(
    kind: Kind, releases: tuple[Release, ...], text: str | None, container: str | None, only_tags: bool
) -> SoftwareNeeds:
    try:
        platform, fault = architecture.parse(text), ""
    except ArchitectureError as exc:
        platform, fault = Platform(), str(exc)
    if platform.looks_quoted:
        fault = architecture.QUOTED
    return SoftwareNeeds(kind, releases, platform, container or "", only_tags, fault)


def accepts(
    needs: SoftwareNeeds, site: SiteSoftware, sources: Mapping[str, tuple[str, ...]] | None = None
) -> Skip | None:
    """None when the queue has the software and the hardware, else why not.

    `sources` are the paths that logical names of containers stand for (`parse_sources`).
    """
    if needs.fault:
        return Skip("", codes.BAD_ARCHITECTURE, "{}", (needs.fault,))
    if not needs.is_asked:
        return None
    if not site.published:
        return _accepts_unpublished(needs, site)
    platform = needs.platform
    refused = hardware.accepts(
        platform.cpu_specs, platform.gpu_spec, site.hardware, cpu_is_implied=platform.cpu_is_implied
    )
    if refused is not None or needs._only_hardware:
        return refused
    name = platform.sw_platform
    is_literal = name in site._platforms or not (needs._is_pattern or needs._pattern_fault)
    if needs._pattern_fault and not is_literal:
        return Skip("", codes.BAD_ARCHITECTURE, "{}", (needs._pattern_fault,))
    resolved = "" if is_literal else resolved_platform(needs, site)
    refused = _has_software(needs, site, sources or {}, resolved)
    if refused is None and not is_literal and not resolved:
        says = "no platform matches {}; the site publishes {}: {}"
        return Skip("", codes.NO_PLATFORM, says, (name, len(site.platforms), Listed(site.platforms)))
    return refused


def accepts_on_gpu_queue(
    needs: SoftwareNeeds, site: SiteSoftware, sources: Mapping[str, tuple[str, ...]] | None = None
) -> Skip | None:
    """The stricter question of queues of GPUs in analysis: only tasks that name a platform, and what is published fits.

    `releases` ANY does not help there. Not asked for searches of hyperparameters.
    """
    if not needs.platform.sw_platform and not needs.fault:
        says = "the site is a GPU queue, and the task names no software platform (needs {})"
        return Skip("", codes.HARDWARE_RESERVED, says, (needs.release,))
    if not site.published and not needs.fault:
        return Skip("", codes.NO_GPU, "the site is a GPU queue, and publishes no hardware", ())
    return accepts(needs, site, sources)


def accepts_gpu(needs: SoftwareNeeds, site: SiteSoftware) -> Skip | None:
    """None when the queue has the GPU that is asked for, whatever its software, or when none is."""
    gpu = needs.platform.gpu_spec
    if gpu is None:
        return None
    if not site.published:
        return Skip("", codes.NO_GPU, "asks for GPU {}; the site publishes no hardware", (gpu,))
    return hardware.gpu_accepts(gpu, site.hardware)


def resolved_platform(needs: SoftwareNeeds, site: SiteSoftware) -> str:
    """What a regular expression for the platform stands for at a queue; empty where nothing has to be resolved.

    It is the first published platform that matches as a whole, with `@base_platform` where the task has one: the text
    that jobs get.
    """
    asked = needs.platform.sw_platform
    if not needs._is_pattern or asked in site._platforms:
        return ""
    found = next((name for name in site.platforms if compiled(asked).fullmatch(name)), "")
    base = needs.platform.base_platform
    return f"{found}@{base}" if found and base else found


def _accepts_unpublished(needs: SoftwareNeeds, site: SiteSoftware) -> Skip | None:
    platform = needs.platform
    refused = accepts_gpu(needs, site)
    if refused is not None:
        return refused
    if platform.asks_cpu:
        asked = " or ".join(map(str, platform.cpu_specs))
        return Skip("", codes.NO_CPU, "asks for CPU {}; the site publishes no hardware", (asked,))
    if not site.takes_any:
        return _nothing_published(
            needs, "publishes software, but its releases are not AUTO" if site.unread else NOTHING
        )
    if needs.container and needs.only_tags:
        return Skip(
            "", codes.NO_CONTAINER, "container {} must be a tag; the site publishes no tags", (needs.container,)
        )
    return None


NOTHING: Final = "publishes no software"


def _nothing_published(needs: SoftwareNeeds, here: str) -> Skip:
    """What a task lacks at a queue that publishes nothing. One that brings its software needs no release of anybody."""
    if needs.kind == "standalone" and needs.container:
        return Skip("", codes.NO_CONTAINER, "needs container {}; the site {}", (needs.container, here))
    platform = _or_any(needs.platform.sw_platform, needs.platform.base_platform)
    if needs.kind == "standalone":
        return Skip("", codes.NO_PLATFORM, "needs {}; the site {}", (platform, here))
    return Skip("", codes.NO_RELEASE, "needs {} on {}; the site {}", (needs.release, platform, here))


def _has_software(
    needs: SoftwareNeeds, site: SiteSoftware, sources: Mapping[str, tuple[str, ...]], resolved: str
) -> Skip | None:
    if needs.container:
        return _has_container(needs, site, sources)
    if needs.kind == "standalone":
        return None
    asked, base = needs.platform.sw_platform, needs.platform.base_platform
    tag = "nightlies" if needs.kind == "nightly" else "atlas"
    if (ANYTHING in site.cvmfs or tag in site.cvmfs) and (
        site.any_container or (not base and (asked in site._platforms or bool(resolved)))
    ):
        return None
    if not base or site._literal_any:
        name = resolved.partition("@")[0] or asked
        if any((name, project, version) in site.tags for project, version in needs.releases):
            return None
    says = (
        "needs {} on {} (cvmfs {}); the site has cvmfs {}, {:platform|platforms}, containers {} and {:tag|tags}, "
        "none of which fits"
    )
    here = (Listed(site.cvmfs), len(site.platforms), Listed(site.containers), len(site.tags))
    return Skip("", codes.NO_RELEASE, says, (needs.release, _or_any(asked, base), tag, *here))


def _has_container(needs: SoftwareNeeds, site: SiteSoftware, sources: Mapping[str, tuple[str, ...]]) -> Skip | None:
    name = needs.container
    if name in site.tag_containers or (site.any_container and not needs.only_tags):
        return None
    if needs.only_tags:
        says = "container {} must be a tag; it is none of the {} that the site publishes"
        return Skip("", codes.NO_CONTAINER, says, (name, len(site.tag_containers)))
    if name.startswith(site.containers) or any(path.startswith(site.containers) for path in sources.get(name, ())):
        return None
    says = "container {} begins with none of the site's paths ({}: {}) and is none of its {:tag|tags}"
    here = (len(site.containers), Listed(site.containers), len(site.tag_containers))
    return Skip("", codes.NO_CONTAINER, says, (name, *here))


def _or_any(platform: str, base: str = "") -> str:
    name = platform or "any platform"
    return f"{name}@{base}" if base else name
