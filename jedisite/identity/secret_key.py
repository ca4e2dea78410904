"""The signing key of an installation: made at the first run, and kept in its home, readable by its owner only."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def kept_key(home: Path) -> str:
    """The key of this home, which the first process makes."""
    path = home / "secret_key"
    home.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"secret_key.{os.getpid()}")
    if not path.exists():
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        try:
            os.link(draft, path)  # fails if another process was first: then its key is taken
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
