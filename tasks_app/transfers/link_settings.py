"""What the configuration says of links, tape and attempts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from brokerage_app.grid.configured import configuration
from brokerage_app.policy.configuration import Configuration
from tasks_app.transfers.rules.pace import MB, LinkPace

COMPONENT = "mover"


@dataclass(frozen=True, slots=True)
class MoverSettings:
    """The parameters of the component `mover`, as they are now."""

    configured: Configuration
    attempts: int
    wait: timedelta
    turn_bytes: int

    def pace(self, source: str, destination: str, is_tape: bool) -> LinkPace:
        """Of a link; one from tape has as many transfers at a time as the tape has drives."""
        get, link = self.configured.get, f"{source}:{destination}"
        at_once, mbps = int(get(COMPONENT, "LINK_TRANSFERS", link)), float(get(COMPONENT, "LINK_RATE", link))
        if not is_tape:
            return LinkPace(at_once, mbps)
        return LinkPace(at_once, mbps, timedelta(seconds=float(get(COMPONENT, "TAPE_LATENCY", source))))

    def drives(self, tape: str) -> int:
        return int(self.configured.get(COMPONENT, "TAPE_DRIVES", tape))


def mover_settings() -> MoverSettings:
    return settings_of(configuration())


def settings_of(found: Configuration) -> MoverSettings:
    """What a configuration says of them."""
    return MoverSettings(
        found,
        int(found.get(COMPONENT, "TRANSFER_ATTEMPTS")),
        timedelta(seconds=float(found.get(COMPONENT, "TRANSFER_RETRY"))),
        int(float(found.get(COMPONENT, "TURN_VOLUME")) * MB),
    )
