"""`manage.py export_sites`: what `import_sites` reads."""

from __future__ import annotations

import json
from typing import Any

from brokerage_app.grid.grid_storing import export
from jedisite.management.command_line import Suggesting


class Command(Suggesting):
    help = "Write the descriptions of queues, storage, sites and links as JSON."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(export(), indent=1))
