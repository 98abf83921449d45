"""People sign in to the dashboard: Apache, a certified OIDC provider, and a real browser."""

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from passhat.history import History
from passhat.records import Outcome, Trial

pytestmark = pytest.mark.slow("a real web server, sign-in provider and browser")

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/how-to/scale-out.md"
MODULES = Path("/usr/lib/apache2/modules")
PARTS = ("mpm_event", "authn_core", "authz_core", "headers", "proxy", "proxy_http", "auth_openidc")
SECRETS = {
    "PASSHAT_TOKEN": "a-token-that-the-user-chose",
    "CLIENT_SECRET": "the-secret-of-this-client-of-the-provider",
    "COOKIE_SECRET": "what-cookies-are-encrypted-with",
}
AROUND = """
ServerRoot {folder}
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
PidFile {folder}/pid
ErrorLog {folder}/error.log
DefaultRuntimeDir {folder}
User www-data
Group www-data
"""


@pytest.fixture
def team(serve_site, tmp_path):
    """The address of a dashboard behind the configuration of the how-to, word for word."""
    missing = [part for part in PARTS if not (MODULES / f"mod_{part}.so").exists()]
    if shutil.which("apache2") is None or missing:
        pytest.skip("no Apache with OIDC here (Debian: libapache2-mod-auth-openidc)")
    if not (HERE.parent / "node_modules/oidc-provider").exists():
        pytest.skip("no OIDC provider here (make test installs it where npm is present)")
    site = serve_site(_filled(tmp_path / "history.db"))
    site.access.token, site.access.reusable = SECRETS["PASSHAT_TOKEN"], True
    site.access.person_header = "X-Forwarded-User"
    port, provider = _free_port(), _free_port()
    address = site.access.public_url = f"http://127.0.0.1:{port}"
    (tmp_path / "apache.conf").write_text(_configuration(tmp_path, port, provider, site.port))
    login = ["node", HERE / "oidc_provider.mjs", str(provider), SECRETS["CLIENT_SECRET"]]
    apache = ["apache2", "-D", "FOREGROUND", "-f", tmp_path / "apache.conf"]
    with _running([*login, f"{address}/signed-in"], provider), _running(apache, port):
        yield address


def test_a_person_signs_in_at_the_provider_and_comes_back_to_the_page_of_before(team, browser):
    page = browser.new_context().new_page()
    page.goto(f"{team}/runs")
    assert "the team's suite" not in page.content()
    _sign_in(page, "ann@example.com")
    assert page.url == f"{team}/runs"
    assert "the team's suite" in page.inner_text("body")
    assert page.inner_text("[data-person]") == "ann@example.com"
    page.goto(team)
    assert page.inner_text("[data-person]") == "ann@example.com"
    page.goto(f"{team}/run/latest")
    page.get_by_text("Tag, note, rename or delete").click()
    page.get_by_label("New tag").fill("baseline")
    page.get_by_role("button", name="Tag", exact=True).click()
    done = page.get_by_role("region", name="Notes and changes")
    assert "ann@example.com tagged it baseline" in done.inner_text()


def test_a_person_whom_the_rule_does_not_name_signs_in_and_sees_nothing(team, browser):
    page = browser.new_context().new_page()
    page.goto(f"{team}/runs")
    _sign_in(page, "eve@elsewhere.example")
    assert "Unauthorized" in page.inner_text("body")
    assert "the team's suite" not in page.content()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Forwarded-User": "ann@example.com"},
        {"X-Passhat-Proxy": SECRETS["PASSHAT_TOKEN"], "X-Forwarded-User": "ann@example.com"},
        {"Cookie": "mod_auth_openidc_session=ann@example.com"},
    ],
)
def test_nobody_gets_in_without_signing_in(team, headers):
    connection = http.client.HTTPConnection(team.removeprefix("http://"), timeout=60)
    connection.request("GET", "/runs", headers={"Accept": "text/html", **headers})
    answer = connection.getresponse()
    assert answer.status == 302
    assert "/auth?response_type=code" in answer.headers["location"]
    assert b"suite" not in answer.read()
    connection.close()


def _sign_in(page, address):
    page.fill("[name=login]", address)
    page.fill("[name=password]", "any")
    page.click("[type=submit]")
    page.click("[type=submit]")  # the provider asks whether passhat may know the address


def _configuration(folder, port, provider, behind):
    block = re.search(r"```apache\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[1]
    for shown, here in (
        ("https://login.example", f"http://127.0.0.1:{provider}"),
        ("https://evals.example", f"http://127.0.0.1:{port}"),
        ("http://127.0.0.1:8000/", f"http://127.0.0.1:{behind}/"),
    ):
        assert shown in block
        block = block.replace(shown, here)
    loaded = "".join(f"LoadModule {part}_module {MODULES}/mod_{part}.so\n" for part in PARTS)
    return loaded + AROUND.format(folder=folder, port=port) + block


@contextmanager
def _running(command, port):
    process = subprocess.Popen(command, env={**os.environ, **SECRETS, "NODE_NO_WARNINGS": "1"})
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _filled(path):
    with History.open(path) as history:
        run = history.start_run("the team's suite")
        history.add_trials(
            run, [Trial(system="a", task="t", trial=i, outcome=Outcome(i % 2)) for i in range(6)]
        )
        history.finish_run(run)
    return path
