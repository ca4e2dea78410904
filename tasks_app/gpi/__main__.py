"""`python -m tasks_app.gpi`."""

from __future__ import annotations

import sys

from tasks_app.gpi.command_shell import main

if __name__ == "__main__":
    sys.exit(main())
