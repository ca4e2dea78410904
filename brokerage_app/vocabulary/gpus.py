"""GPUs as pilots saw them on worker nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokerage_app.vocabulary.versions import Version, parse


@dataclass(frozen=True, slots=True)
class GpuRow:
    """GPUs of one kind that pilots saw on nodes of a queue. `version` is of the CUDA toolkit; None: not known.

    `versions` are vram, version and driver_version made ready for comparison.
    """

    vendor: str = ""
    model: str = ""
    vram_mb: int | None = None
    microarchitecture: str = ""
    version: str | None = None
    driver_version: str | None = None
    versions: Mapping[str, Version] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        texts = {
            "vram": None if self.vram_mb is None else str(self.vram_mb),
            "version": self.version,
            "driver_version": self.driver_version,
        }
        object.__setattr__(self, "versions", {name: text and parse(text) for name, text in texts.items()})

    def value(self, name: str) -> object:
        value = self.vram_mb if name == "vram" else getattr(self, name)
        return "unknown" if value is None else value
