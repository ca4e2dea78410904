from __future__ import annotations

import os

import django

from jedisite.processes import garbage

garbage.put_off()  # until the apps are ready
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "jedisite.settings")
django.setup(set_prefix=False)

from django.conf import settings  # noqa: E402

from jedisite.database import database_limits  # noqa: E402
from jedisite.web.short_way import Handler  # noqa: E402 - it reads the settings

database_limits.use("web", settings.JEDI_DATABASE_LIMITS)

garbage.put_off()  # until all views are here
application = Handler()
application.load_views()
garbage.look_again()
