from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "jedisite.settings")
django.setup(set_prefix=False)

from jedisite.short_way import Handler  # noqa: E402 - it reads the settings

application = Handler()
