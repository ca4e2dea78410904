"""Whether a queue has the CPU and the GPU that a task asks for.

Queues publish what they have in two places (JEDI brokerage document): the site description says whether there are GPUs
at all and whom the queue is kept for (`excl`); what pilots saw on the nodes says vendor, model and so on of the GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from brokerage_app.formulas.architecture import ANY, CpuSpec, GpuSpec
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.gpus import GpuRow
from brokerage_app.vocabulary.skip import Listed, Skip
from jedisite.vocabulary.patterns import PatternError, compiled

EXCLUSIVE: Final = "excl"
_WILDCARDS: Final = frozenset({"any", ""})


@dataclass(frozen=True, slots=True)
class CpuPart:
    """CPUs of a queue as published. None: says nothing. `any` accepts everything, `excl` only those who ask."""

    arch: frozenset[str] | None = None
    vendor: frozenset[str] | None = None
    instr: frozenset[str] | None = None

    def __str__(self) -> str:
        return ", ".join(f"{name} {_listed(getattr(self, name))}" for name in ("arch", "vendor", "instr"))


@dataclass(frozen=True, slots=True)
class Hardware:
    """Hardware of a queue. `gpu_published`: the site description has a GPU part; without it there is no GPU.

    cpu_levels   (level, percentage of the queue's cores), such as ("x86_64-v3", 35.0)
    """

    cpu: CpuPart | None = None
    cpu_exclusive: bool = False
    gpu_published: bool = False
    gpu_exclusive: bool = False
    gpu_rows: tuple[GpuRow, ...] = ()
    cpu_levels: tuple[tuple[str, float], ...] = ()


def parse_architectures(
    published: object, gpu_rows: Iterable[GpuRow] = (), cpu_levels: Iterable[tuple[str, float]] = ()
) -> Hardware:
    """Hardware from the list `architectures` of a site description and what monitoring knows.

    What is not of the expected form counts as not published, so one odd entry of a site harms nobody else. The last
    part of each type counts.
    """
    parts = {}
    for part in published if isinstance(published, list | tuple) else ():
        if isinstance(part, Mapping) and part.get("type") in ("cpu", "gpu"):
            parts[part["type"]] = part
    cpu, gpu = parts.get("cpu"), parts.get("gpu")
    cpu_part = None if cpu is None else CpuPart(*(names(cpu.get(key)) for key in ("arch", "vendor", "instr")))
    return Hardware(
        cpu=cpu_part,
        cpu_exclusive=cpu is not None and _keeps(cpu),
        gpu_published=gpu is not None,
        gpu_exclusive=gpu is not None and _keeps(gpu),
        gpu_rows=tuple(gpu_rows),
        cpu_levels=tuple(cpu_levels),
    )


def names(value: object) -> frozenset[str] | None:
    """A published list of names (one name may stand alone); None when nothing of the kind is published."""
    if isinstance(value, str):
        return frozenset({value})
    if isinstance(value, list | tuple):
        return frozenset(item for item in value if isinstance(item, str))
    return None


def accepts(
    cpu_specs: tuple[CpuSpec, ...], gpu_spec: GpuSpec | None, hardware: Hardware, *, cpu_is_implied: bool = False
) -> Skip | None:
    """None when the queue's hardware will do, else why not.

    A CPU that is only implied by the name of a platform is tested where CPUs are published, and is no request where
    they are not: a task that says nothing of hardware runs at sites that say nothing of it.
    """
    if hardware.cpu_exclusive and not cpu_specs:
        return Skip(
            "", codes.HARDWARE_RESERVED, "asks for no CPU; the site is kept for tasks that ask for {}", (hardware.cpu,)
        )
    if hardware.gpu_exclusive and gpu_spec is None:
        says = "asks for no GPU; the site is kept for tasks that ask for its GPUs ({:kind|kinds})"
        return Skip("", codes.HARDWARE_RESERVED, says, (len(hardware.gpu_rows),))
    if cpu_specs and not (cpu_is_implied and hardware.cpu is None):
        refused = cpu_accepts(cpu_specs, hardware.cpu)
        if refused is not None:
            return refused
    return gpu_accepts(gpu_spec, hardware) if gpu_spec is not None else None


def cpu_accepts(specs: tuple[CpuSpec, ...], part: CpuPart | None) -> Skip | None:
    """None when one of the alternatives will do at a queue that publishes `part`."""
    if part is None:
        return Skip("", codes.NO_CPU, "asks for CPU {}; the site publishes no CPU", (_Alternatives(specs),))
    try:
        for spec in specs:
            if _cpu_fits(spec, part):
                return None
    except PatternError as exc:
        return Skip("", codes.BAD_ARCHITECTURE, "{}", (str(exc),))
    return Skip("", codes.NO_CPU, "asks for CPU {}; the site has {}", (_Alternatives(specs), part))


def _cpu_fits(spec: CpuSpec, part: CpuPart) -> bool:
    return (
        _arch_fits(spec.arch, part.arch)
        and _value_fits(spec.vendor, part.vendor)
        and _value_fits(spec.instr, part.instr)
    )


def _arch_fits(asked: str, published: frozenset[str] | None) -> bool:
    if _value_fits(asked, published):
        return True
    return asked != ANY and published is not None and any(compiled(asked).fullmatch(name) for name in published)


def _value_fits(asked: str, published: frozenset[str] | None) -> bool:
    if asked == ANY:
        return published is None or EXCLUSIVE not in published
    return published is not None and (asked in published or not _WILDCARDS.isdisjoint(published))


def gpu_accepts(spec: GpuSpec, hardware: Hardware) -> Skip | None:
    """None when the queue has GPUs and they are as asked.

    Vendor, model and microarchitecture: some kind of GPU has them. Memory and versions: every kind has them, since a
    job cannot choose its node. Without monitoring a queue takes only tasks to which any GPU will do.
    """
    if not hardware.gpu_published:
        return Skip("", codes.NO_GPU, "asks for GPU {}; the site publishes no GPU", (spec,))
    if not spec.asks_attributes:
        return None
    rows = hardware.gpu_rows
    if not rows:
        return Skip("", codes.NO_GPU, "asks for GPU {}; the site's GPUs are unknown (0 kinds seen)", (spec,))
    try:
        return _gpu_refused(spec, rows)
    except PatternError as exc:
        return Skip("", codes.BAD_ARCHITECTURE, "{}", (str(exc),))


def _gpu_refused(spec: GpuSpec, rows: tuple[GpuRow, ...]) -> Skip | None:
    if spec.vendor != ANY and not any([_begins(spec.vendor, row.vendor) for row in rows]):
        return _no_gpu("vendor", spec.vendor, [row.vendor for row in rows])
    if spec.model != ANY:
        found = any([_begins(spec.model, row.model) for row in rows])
        if found == spec.excludes_model:
            asked = f"other than {spec.model}" if spec.excludes_model else spec.model
            return _no_gpu("model", asked, [row.model for row in rows])
    generations = spec.microarchitectures
    if generations and not any([row.microarchitecture in generations for row in rows]):
        return _no_gpu("microarchitecture", " or ".join(generations), [row.microarchitecture for row in rows])
    for name, condition in spec.conditions:
        if not all([condition.holds(row.versions[name]) for row in rows]):
            return _no_gpu(name, condition, [row.value(name) for row in rows])
    return None


def _begins(pattern: str, published: str) -> bool:
    """Whether what is published begins with a match, whatever its case. Raises PatternError."""
    return compiled(pattern, ignore_case=True).match(published)


def _no_gpu(what: str, asked: object, published: list[object] | list[str]) -> Skip:
    what = {"vram": "memory (MB)", "version": "CUDA version", "driver_version": "driver version"}.get(what, what)
    says = "asks for GPUs of {} {}; the site's {:kind has|kinds have} {}"
    return Skip("", codes.NO_GPU, says, (what, asked, len(published), Listed(frozenset(map(str, published)))))


def platform_preference(level: str, cpu_levels: Iterable[tuple[str, float]]) -> float:
    """Factor of a site's weight: 1 + the share of its cores with the preferred level; 1 without a preference."""
    if not level:
        return 1.0
    return 1.0 + sum(percentage for name, percentage in cpu_levels if name == level) / 100


def _keeps(part: Mapping[str, object]) -> bool:
    return any(isinstance(value, list | tuple) and EXCLUSIVE in value for value in part.values())


@dataclass(frozen=True, slots=True)
class _Alternatives:
    specs: tuple[CpuSpec, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.specs))


def _listed(values: frozenset[str] | None) -> str:
    return "-" if values is None else " or ".join(sorted(name or "''" for name in values)) or "-"
