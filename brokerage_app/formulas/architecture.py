"""What a task's `architecture` asks for: software platform, base platform, CPU and GPU.

Two forms, both of JEDI's brokerage document:

    sw_platform[@base_platform][#arch[-vendor[-instr]]][&vendor[-model][:key op value]...]
    {"sw_platform": ..., "base_platform": ..., "cpu_specs": [...], "gpu_spec": {...}, "cpu_pref": {...}}

A text that is no JSON object is read as the first form. So JSON inside quotes, as test headers sometimes have it, is a
software platform with a strange name that no site has; `Platform.looks_quoted` tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from brokerage_app.vocabulary import versions
from jedisite.vocabulary.patterns import fault_of
from jedisite.vocabulary.words import NOT_ONE_LINE, is_one_line

ANY: Final = "*"
Operator = Literal["==", "!=", ">=", "<=", ">", "<"]

_ITEM: Final = re.compile(r"(\w+)(>=|<=|!=|==|>|<|=)(.*)", re.DOTALL)
_CONDITION: Final = re.compile(r"(>=|<=|!=|==|>|<|=)(.*)", re.DOTALL)
_GPU_KEYS: Final = {"vram": "vram", "cuda": "version", "driver": "driver_version"}
_CONDITIONS: Final = ("vram", "version", "driver_version")


QUOTED: Final = "the architecture begins with a quote, so it is not JSON: leave out the quotes around it"


class ArchitectureError(ValueError):
    """An architecture that cannot be understood. The text is a sentence that begins with the key at fault."""


@dataclass(frozen=True, slots=True)
class CpuSpec:
    """One alternative of CPUs that will do. `arch` may be a regular expression; `*` asks nothing."""

    arch: str = ANY
    vendor: str = ANY
    instr: str = ANY

    def __str__(self) -> str:
        return f"{self.arch},{self.vendor},{self.instr}"


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison with a version or a number, such as `>=12.0`."""

    operator: Operator
    text: str
    _version: versions.Version = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_version", versions.parse(self.text))

    def holds(self, version: versions.Version) -> bool:
        return versions.compare(version, self.operator, self._version)

    def __str__(self) -> str:
        return f"{self.operator}{self.text}"


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """The GPU that is asked for. `vendor` and `model` are regular expressions, `*` asks nothing.

    excludes_model     the model must not match, on any node
    vram               MB
    version            of the CUDA toolkit
    driver_version     of the kernel driver
    microarchitectures names of generations, one of which must be there; empty asks nothing
    conditions         those of vram, version and driver_version that are asked, by name
    """

    vendor: str = ANY
    model: str = ANY
    excludes_model: bool = False
    vram: Condition | None = None
    version: Condition | None = None
    driver_version: Condition | None = None
    microarchitectures: tuple[str, ...] = ()
    conditions: tuple[tuple[str, Condition], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = ((name, getattr(self, name)) for name in _CONDITIONS)
        object.__setattr__(self, "conditions", tuple((name, value) for name, value in found if value is not None))

    @property
    def asks_attributes(self) -> bool:
        """Whether anything is asked beyond "some GPU"."""
        return bool(self.vendor != ANY or self.model != ANY or self.conditions or self.microarchitectures)

    def __str__(self) -> str:
        parts = [f"vendor {self.vendor}", f"model {'other than ' if self.excludes_model else ''}{self.model}"]
        parts += [f"{name} {value}" for name, value in self.conditions]
        if self.microarchitectures:
            parts.append(f"microarchitecture {' or '.join(self.microarchitectures)}")
        return ", ".join(part for part in parts if not part.endswith(f" {ANY}")) or "any"


@dataclass(frozen=True, slots=True)
class Platform:
    """A parsed architecture. Empty texts ask nothing.

    cpu_specs        alternatives, any of which will do
    cpu_is_implied   the CPU was not asked for: it is the first part of the name of the software platform
    preferred_level  level of CPU (x86_64-v3) whose share of a site raises the site's weight
    """

    sw_platform: str = ""
    base_platform: str = ""
    cpu_specs: tuple[CpuSpec, ...] = ()
    cpu_is_implied: bool = False
    gpu_spec: GpuSpec | None = None
    preferred_level: str = ""
    looks_quoted: bool = False

    @property
    def asks_cpu(self) -> bool:
        return bool(self.cpu_specs) and not self.cpu_is_implied

    @property
    def asks_hardware(self) -> bool:
        """Whether CPU or GPU are asked for in so many words."""
        return self.asks_cpu or self.gpu_spec is not None


def parse(text: str | None) -> Platform:
    """The parts of an architecture; None and the empty text ask nothing.

    Raises ArchitectureError for a condition without a number, and for JSON whose values are of the wrong kind.
    """
    if not text:
        return Platform()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    return _from_json(found) if isinstance(found, dict) else _from_text(text)


def faults_of(text: str | None) -> list[str]:
    """Why no site could ever take a task with this architecture, as sentences; empty when some could.

    For whoever submits: a pattern that is no regular expression matches nothing, and neither does JSON in quotes.
    """
    try:
        platform = parse(text)
    except ArchitectureError as exc:
        return [str(exc)]
    if platform.looks_quoted:
        return [QUOTED]
    gpu = platform.gpu_spec or GpuSpec()
    names = (
        platform.sw_platform,
        platform.base_platform,
        *map(str, platform.cpu_specs),
        str(gpu),
        platform.preferred_level,
    )
    if not all(map(is_one_line, names)):  # JSON has them as escapes, so the text alone does not tell
        return [f"the architecture {NOT_ONE_LINE}"]
    patterns = [platform.sw_platform, *(spec.arch for spec in platform.cpu_specs), gpu.vendor, gpu.model]
    return list(dict.fromkeys(fault for pattern in patterns if pattern != ANY and (fault := fault_of(pattern))))


def _from_text(text: str) -> Platform:
    sw_platform = re.split("[@#&]", text, maxsplit=1)[0]
    cpu = _piece(text, "#", "@&")
    specs = _alternatives(cpu) if cpu is not None else _implied(sw_platform)
    gpu = _piece(text, "&", "@#")
    return Platform(
        sw_platform=sw_platform,
        base_platform=_piece(text, "@", "#&") or "",
        cpu_specs=specs,
        cpu_is_implied=cpu is None and bool(specs),
        gpu_spec=_gpu_from_text(gpu) if gpu else None,
        looks_quoted=text[0] in "'\"" and "{" in text,
    )


def _piece(text: str, sign: str, others: str) -> str | None:
    """What stands after the first `sign` up to one of `others`; None without the sign."""
    _, found, rest = text.partition(sign)
    return re.split(f"[{others}]", rest, maxsplit=1)[0] if found else None


def _implied(sw_platform: str) -> tuple[CpuSpec, ...]:
    """The CPU that the name of a software platform begins with; none for a pattern that begins with `^`."""
    arch = sw_platform.partition("-")[0]
    return (CpuSpec(arch),) if arch and not arch.startswith("^") else ()


def _alternatives(text: str) -> tuple[CpuSpec, ...]:
    if text.startswith("(") and _closes(text) == len(text) - 1:
        text = text[1:-1]
    return tuple(_cpu_from_text(part) for part in _split_outside(text, "|")) if text else ()


def _cpu_from_text(text: str) -> CpuSpec:
    arch, vendor, instr = [*_split_outside(text, "-", 2), ANY, ANY][:3]
    return CpuSpec(arch or ANY, vendor or ANY, instr or ANY)


def _closes(text: str) -> int:
    """Where the bracket at the beginning is closed; -1 when it is not."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at
    return -1


def _split_outside(text: str, sign: str, most: int = -1) -> list[str]:
    """The text cut at `sign`, at most `most` times, but not inside brackets."""
    parts: list[str] = []
    start = depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == sign and depth <= 0 and len(parts) != most:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _gpu_from_text(text: str) -> GpuSpec:
    first, *items = text.split(":")
    vendor, _, model = first.partition("-")
    found: dict[str, Any] = {"vendor": vendor or ANY, "model": model or ANY}
    for item in items:
        match = _ITEM.match(item)
        if match is None:
            continue
        key, operator, value = match.groups()
        if key == "model":
            found.update(model=value or ANY, excludes_model=operator == "!=" and bool(value))
        elif key == "uarch":
            found["microarchitectures"] = tuple(filter(None, value.split(",")))
        elif key in _GPU_KEYS:
            found[_GPU_KEYS[key]] = _condition(key, operator, value)
    return GpuSpec(**found)


def _condition(key: str, operator: str, value: str) -> Condition:
    value = value.strip()
    if versions.parse(value) is None:
        raise ArchitectureError(f"{key}: {value!r} is not a number or a version such as 12 or 12.0.1")
    return Condition("==" if operator == "=" else operator, value)  # type: ignore[arg-type]


def _from_json(found: Mapping[str, Any]) -> Platform:
    """The JSON form; what it leaves out comes from `encoded_platform`, an architecture of the old form."""
    encoded = _text(found, "encoded_platform", "")
    old = _from_text(encoded) if encoded else Platform()
    specs = found.get("cpu_specs") or ()
    if not isinstance(specs, list | tuple):
        raise ArchitectureError(f"cpu_specs: expected a list, got {_shown(specs)}")
    gpu = found.get("gpu_spec")
    return Platform(
        sw_platform=_text(found, "sw_platform", "") or old.sw_platform,
        base_platform=_text(found, "base_platform", "") or old.base_platform,
        cpu_specs=tuple(_cpu_from_json(spec) for spec in specs) or old.cpu_specs,
        cpu_is_implied=not specs and old.cpu_is_implied,
        gpu_spec=old.gpu_spec if gpu is None else _gpu_from_json(gpu),
        preferred_level=_text(_map(found, "cpu_pref"), "preferred_architecture_level", ""),
        looks_quoted=old.looks_quoted,
    )


def _cpu_from_json(spec: object) -> CpuSpec:
    if not isinstance(spec, Mapping):
        raise ArchitectureError(f"cpu_specs: expected objects with arch, vendor, instr, got {_shown(spec)}")
    return CpuSpec(*(_text(spec, key, ANY) or ANY for key in ("arch", "vendor", "instr")))


def _gpu_from_json(spec: object) -> GpuSpec:
    if not isinstance(spec, Mapping):
        raise ArchitectureError(f"gpu_spec: expected an object with vendor, model and so on, got {_shown(spec)}")
    model = spec.get("model")
    excludes = isinstance(model, Mapping) and model.get("excl") is True
    pattern = _text(model, "pattern", ANY) if isinstance(model, Mapping) else _text(spec, "model", ANY)
    return GpuSpec(
        vendor=_text(spec, "vendor", ANY) or ANY,
        model=pattern or ANY,
        excludes_model=excludes and bool(pattern) and pattern != ANY,
        microarchitectures=_names(spec.get("microarchitecture")),
        **{key: _condition_of_text(key, spec[key]) for key in _CONDITIONS if spec.get(key) is not None},
    )


def _condition_of_text(key: str, value: object) -> Condition:
    match = _CONDITION.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ArchitectureError(
            f"gpu_spec.{key}: expected an operator and a number such as >=12.0, got {_shown(value)}"
        )
    return _condition(f"gpu_spec.{key}", *match.groups())


def _names(value: object) -> tuple[str, ...]:
    if value is None or value == ANY:
        return ()
    if isinstance(value, str):
        return (value,) if value else ()
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise ArchitectureError(f"gpu_spec.microarchitecture: expected a name or a list of names, got {_shown(value)}")


def _map(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = found.get(key) or {}
    if not isinstance(value, Mapping):
        raise ArchitectureError(f"{key}: expected an object, got {_shown(value)}")
    return value


def _text(found: Mapping[str, Any], key: str, default: str) -> str:
    value = found.get(key, default)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ArchitectureError(f"{key}: expected a text, got {_shown(value)}")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
