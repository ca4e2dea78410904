"""The file of trusted issuers: what it may say, and the sentence for what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jedisite.identity import oidc_settings
from jedisite.identity.oidc_settings import Provider
from jedisite.vocabulary.roles import Role

GOOD = """
[atlas]
issuer = "https://iam.example/"
audience = ["https://panda.example", "https://wlcg.example/jwt/v1/any"]
client_id = "panda"
client_secret_env = "PANDA_TEST_SECRET"
roles = ["production", "pilot"]
make_users = true

["vo.lab.example"]
issuer = "http://127.0.0.1:8080"
client_id = "lab"
"""


def test_a_file_names_providers_by_vo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDA_TEST_SECRET", "hush")
    path = tmp_path / "oidc.toml"
    path.write_text(GOOD)
    audiences = ("https://panda.example", "https://wlcg.example/jwt/v1/any")
    roles = frozenset({Role.PRODUCTION, Role.PILOT})
    found = oidc_settings.read(str(path))
    assert found == {
        "atlas": Provider("atlas", "https://iam.example/", audiences, "panda", "hush", roles, True),
        "vo.lab.example": Provider("vo.lab.example", "http://127.0.0.1:8080", ("lab",), "lab"),
    }
    assert found["atlas"].discovery == "https://iam.example/.well-known/openid-configuration"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[atlas", "cannot be read"),
        ("atlas = 1", "no table of a VO"),
        ('["a b"]', "no table of a VO"),
        ('[a]\nclient_id = "x"', "a.issuer is missing"),
        ('[a]\nissuer = "https://x"', "a.client_id is missing"),
        ('[a]\nissuer = "http://x.example"\nclient_id = "x"', "https address"),
        ("[a]\nissuer = 1", "a.issuer must be a text"),
        ('[a]\nsecret = "x"', "a.secret is not known"),
        ('[a]\naudience = "x"', "a.audience must be a list"),
        ("[a]\naudience = [1]", "a.audience must be a list"),
        ('[a]\nmake_users = "yes"', "true or false"),
        ('[a]\nissuer = "https://x"\nclient_id = "x"\nroles = ["king"]', "'king' is none of"),
        ('[a]\nissuer = "https://x"\nclient_id = "x"\nclient_secret_env = "PANDA_NONE"', "no environment variable"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "oidc.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        oidc_settings.read(str(path))
