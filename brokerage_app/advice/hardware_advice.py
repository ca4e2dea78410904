"""Advice for refused hardware: what a queue lacks of the two things that let it take tasks for a GPU, its worker nodes'
GPUs and its software tags, and what a task asks for without it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from brokerage_app.formulas.architecture import ANY, ArchitectureError, GpuSpec, parse
from brokerage_app.vocabulary.site_view import SiteView

TAGS: Final = "published in its software tags (architectures, an entry of the type gpu{})"
READ: Final = "; they count only with AUTO among its releases"
NODES: Final = "entered at its worker nodes (Worker node GPUs in the administration)"


@dataclass(frozen=True, slots=True)
class Entered:
    """What to do about GPUs that a queue has, and which fields of the queue change."""

    what: str
    changes: Mapping[str, Any]


def entered(architecture: str, queue: SiteView) -> Iterator[Entered]:
    """What may be lacking at a queue for a task that asks for a GPU, the least first. Nothing where it is not lacking."""
    try:
        platform = parse(architecture)
    except ArchitectureError:
        return
    spec = platform.gpu_spec
    if spec is None:
        return
    nodes = {"gpus": [_row(spec)]} if spec.asks_attributes and not queue.gpus else {}
    published = queue.software if isinstance(queue.software, Mapping) and _is_read(queue) else None
    listed = published.get("architectures") if published is not None else None
    parts = listed if isinstance(listed, list) else []
    has_part = any(isinstance(part, Mapping) and part.get("type") == "gpu" for part in parts)
    if has_part:
        if nodes:
            yield Entered(NODES, nodes)
        return
    with_gpu = [*parts, {"type": "gpu"}]
    is_read = _is_read(queue)
    tags, more = TAGS.format("" if is_read else READ), f" and {NODES}" if nodes else ""
    # What else stands there lets tasks of others run.
    releases = {} if is_read else {"releases": [*queue.releases, "AUTO"]}
    yield Entered(tags + more, {"software": {**(published or {}), "architectures": with_gpu}, **releases, **nodes})
    if published is None and platform.sw_platform:
        software = {
            "cmtconfigs": [platform.sw_platform],
            "cvmfs": ["any"],
            "containers": ["any"],
            "architectures": with_gpu,
        }
        named = f"together with its platform {platform.sw_platform}"
        yield Entered(f"{tags}, {named}{more}", {"software": software, **releases, **nodes})


def _is_read(queue: SiteView) -> bool:
    """Whether the software tags of a queue are used."""
    return not queue.releases or "AUTO" in queue.releases


def _row(spec: GpuSpec) -> dict[str, Any]:
    """A row for a GPU as requested, as far as patterns allow."""
    row: dict[str, Any] = {
        "vendor": _literal(spec.vendor),
        "model": "" if spec.excludes_model else _literal(spec.model),
    }
    if spec.microarchitectures:
        row["microarchitecture"] = spec.microarchitectures[0]
    for name, condition in spec.conditions:
        text = condition.text
        if condition.operator in ("!=", ">"):
            text += "9"
        elif condition.operator == "<":
            text = "0"
        if name == "vram":
            row["vram_mb"] = int(text) if text.isdigit() else None
        else:
            row[name] = text
    return row


def _literal(pattern: str) -> str:
    return "" if pattern == ANY else re.split(r"[|*(]", pattern.strip("^$("))[0].rstrip(".")


def without_hardware(text: str, *, gpu: bool) -> str:
    """An architecture that asks for no GPU, or for no CPU."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        found.pop("gpu_spec" if gpu else "cpu_specs", None)
        return json.dumps(found) if found else ""
    return re.sub("&[^@#]*" if gpu else "#[^@&]*", "", text)
