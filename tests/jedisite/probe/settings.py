"""The project's settings with the app of the probe."""

from jedisite.settings import *  # noqa: F403
from jedisite.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.jedisite.probe.apps.ProbeConfig"]
