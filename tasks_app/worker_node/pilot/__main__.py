"""`python -m tasks_app.worker_node.pilot --queue Q --server URL`: the same as `manage.py pilot`, without Django's start-up."""

from __future__ import annotations

import sys

from tasks_app.worker_node.pilot.main import main

if __name__ == "__main__":
    sys.exit(main())
