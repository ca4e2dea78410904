"""An installation with real pilots, and a user with panda-client."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import once, pip, run
from tests.clients.user import User
from tests.installation import Site, wait_for

PASSWORD = secrets.token_urlsafe(12)
MAKE_USER = (
    "from django.contrib.auth.models import User; "
    "User.objects.create_user('ada', password='{}', first_name='Ada', last_name='Lovelace')"
)
PILOT = "panda-pilot==3.7.0.36"


@pytest.fixture(scope="session")
def panda_client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with panda-client."""
    return once(
        tmp_path_factory, "panda-client", lambda folder: pip("install", "-q", "panda-client==2.2.0", into=folder)
    )


@pytest.fixture(scope="session")
def panda_pilot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source of panda-pilot, which has the launcher that its wheel lacks."""

    def make(folder: Path) -> None:
        pip("download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(folder), PILOT)
        (archive,) = folder.glob("*.tar.gz")
        run("tar", "--extract", "--file", str(archive), "--directory", str(folder))

    (source,) = once(tmp_path_factory, "panda-pilot", make).glob("panda*pilot-*/")
    return source


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, panda_pilot: Path) -> Iterator[Site]:
    """`manage.py up` in an empty folder, with PanDA's own pilots and an issuer of tokens."""
    home = tmp_path_factory.mktemp("site")
    home.parent.chmod(0o755)
    home.chmod(0o755)
    readable = tmp_path_factory.mktemp("readable")
    readable.chmod(0o755)
    site = Site(
        home,
        "--slots",
        "4",
        JEDI_PILOT="panda",
        JEDI_PANDA_PILOT_DIR=str(panda_pilot),
        JEDI_PILOT_HEARTBEAT_S="5",
        JEDI_DEV_ISSUER="lab",
        JEDI_PAYLOAD_READS=str(readable),
        JEDI_PAYLOAD_NETWORK="1",  # payloads ask a server of the test
    )
    try:
        wait_for(lambda: site.url, "the site's start")
        yield site
    finally:
        site.stop()


@pytest.fixture(scope="module")
def ada(site: Site, panda_client: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody who has an account at the site and a token."""
    site.manage("shell", "-c", MAKE_USER.format(PASSWORD))
    token = site.manage("token", "make", "ada").split()[-1]
    return User(panda_client, site.url, token, tmp_path_factory.mktemp("ada"))
