"""An installation with real pilots, and a user with panda-client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import once, pip
from tests.clients.user import User
from tests.installation import Site, wait_for

MAKE_USER = "from django.contrib.auth.models import User; User.objects.create_user('{}', first_name='{}', last_name='{}')"


@pytest.fixture(scope="session")
def panda_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with panda-client."""
    return once(tmp_path_factory, "panda-client", lambda folder: pip(folder, "install", "-q", "panda-client==2.2.0"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`manage.py up` in an empty folder."""
    home = tmp_path_factory.mktemp("site")
    home.parent.chmod(0o755)
    home.chmod(0o755)
    site = Site(home, "--slots", "3", JEDI_PILOT_HEARTBEAT_S="5")
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()


@pytest.fixture(scope="module")
def ada(site: Site, panda_client: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody who has an account at the site and a token."""
    site.manage("shell", "-c", MAKE_USER.format("ada", "Ada", "Lovelace"))
    token = site.manage("token", "make", "ada").split()[-1]
    return User(panda_client, site.url, token, tmp_path_factory.mktemp("ada"))
