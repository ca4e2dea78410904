"""Software and hardware of worker nodes."""

from __future__ import annotations

from typing import Final

from brokerage_app.vocabulary.codes.registering import code

BAD_ARCHITECTURE: Final = code(
    "bad_architecture",
    "The architecture cannot be understood",
    "software",
    "user",
    "Correct the task's architecture as the sentence says, and submit the task again.",
    severity="error",
)
NO_RELEASE: Final = code(
    "no_release",
    "Release or cache is not installed",
    "software",
    "site",
    "Use a release or a container that more sites have, or ask the site to publish it.",
)
NO_PLATFORM: Final = code(
    "no_platform",
    "No platform matches",
    "software",
    "user",
    "Use a wider expression for the software platform, or name one that the site publishes.",
)
NO_CONTAINER: Final = code(
    "no_container",
    "Container is not available",
    "software",
    "user",
    "Use an image under a path that the site allows, or one that is published as a tag.",
)
NO_CPU: Final = code(
    "no_cpu",
    "No such CPU",
    "software",
    "user",
    "Ask for a CPU that more sites have, or ask the site to publish its CPUs.",
)
NO_GPU: Final = code(
    "no_gpu",
    "No such GPU",
    "software",
    "user",
    "Ask for less of the GPU (vendor, model, memory, versions), or have the site publish its GPUs: both at the queue's "
    "worker nodes and in its software tags (architectures, an entry of the type gpu).",
)
HARDWARE_RESERVED: Final = code(
    "hardware_reserved",
    "Site is reserved for other hardware requests",
    "software",
    "nobody",
    "Nothing needs to be done: the site accepts only tasks that ask for its special hardware.",
    severity="info",
)
