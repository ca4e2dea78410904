"""Settings for a command that needs no database, or only says what it can do: no agents, no admin."""

from jedisite.settings import *  # noqa: F403
from jedisite.settings import INSTALLED_APPS as _ALL

JEDI_LIGHT = True
_PAGES = {"unfold", "unfold.contrib.filters", "drf_spectacular_sidecar", "django_htmx", "django_filters"}
INSTALLED_APPS = [name for name in _ALL if name not in _PAGES]
