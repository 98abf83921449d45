"""People behind a proxy, in a real browser.

They sign in (Apache and a certified OIDC provider), and do what a run's page is for under a path
of nginx.
"""

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

from passhat.analysis.planning.simulate import simulate
from passhat.history import History
from passhat.ingest import read_trials
from passhat.records import Outcome, Trial
from passhat.records.transcript import Transcript, Turn

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


NGINX = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location /passhat/ {{
      auth_basic "team"; auth_basic_user_file {folder}/people;
      proxy_pass http://127.0.0.1:{behind}/;
      proxy_set_header Host 127.0.0.1:{behind};
      proxy_set_header X-Passhat-Proxy {token};
      proxy_set_header X-Forwarded-User $remote_user;
    }}
  }}
}}
"""


@pytest.fixture
def under_a_path(serve_site, tmp_path):
    """A store, and the address of its dashboard under a path of nginx, which knows ann and bob."""
    if shutil.which("nginx") is None:
        pytest.skip("no nginx here (Debian: apt-get install nginx-light)")
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for day in (1, 2):
            run = history.start_run("support", started=f"2026-11-0{day}T09:00:00.000+00:00")
            trials = list(simulate(tasks=3, runs=4, rate=0.5, seed=day))
            history.add_trials(run, trials)
            said = Transcript(messages=(Turn(role="user", text="Where is my parcel?"),)).to_json()
            keys = [(one.system, one.task, one.trial) for one in trials]
            history.add_transcripts(run, dict.fromkeys(keys, said))
            history.finish_run(run)
    site, port = serve_site(path), _free_port()
    site.access.token, site.access.reusable = SECRETS["PASSHAT_TOKEN"], True
    site.access.person_header = "X-Forwarded-User"
    site.access.public_url = f"http://127.0.0.1:{port}/passhat"
    config = NGINX.format(folder=tmp_path, port=port, behind=site.port, token=site.access.token)
    if os.geteuid() == 0:  # its workers would be somebody who cannot read this folder
        config = f"user root;{config}"
    (tmp_path / "nginx.conf").write_text(config)
    (tmp_path / "people").write_text("ann:{PLAIN}right\nbob:{PLAIN}right\n")
    with _running(["nginx", "-p", tmp_path, "-c", tmp_path / "nginx.conf"], port):
        yield path, site.access.public_url


def test_all_that_a_run_s_page_is_for_is_done_under_a_path_and_the_log_says_by_whom(
    under_a_path, browser, tmp_path
):
    store, team = under_a_path
    with History.open(store, read_only=True) as history:
        run = history.find_run("latest")
    ann, bob = (
        browser.new_context(http_credentials={"username": name, "password": "right"}).new_page()
        for name in ("ann", "bob")
    )
    ann.goto(f"{team}/run/{run.key}")

    def form():
        ann.get_by_text("Tag, note, rename or delete").click()

    form()
    ann.get_by_label("New tag").fill("v1")
    ann.get_by_role("button", name="Tag", exact=True).click()
    form()
    ann.get_by_label("For everybody who looks at this run").fill("the proxy was down")
    ann.get_by_role("button", name="Keep note").click()
    form()
    ann.get_by_role("button", name="Remove the tag v1").click()
    form()
    ann.get_by_label("Suite", exact=True).fill("shop")
    ann.get_by_role("button", name="Rename").click()
    done = ann.get_by_role("region", name="Notes and changes")
    for said in ("tagged it v1", "the proxy was down", "removed the tag v1", "support to shop"):
        assert said in done.inner_text()

    # A colleague gets the run as a link: she is somebody else to the proxy, and sees the same.
    ann.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ann.get_by_role("button", name="Copy link").click()
    ann.get_by_role("button", name="Copied").wait_for()
    link = ann.evaluate("navigator.clipboard.readText()")
    assert link == f"{team}/run/{run.key}"
    bob.goto(link)
    assert bob.inner_text("[data-person]") == "bob"
    assert bob.inner_text("h1") == ann.inner_text("h1")

    # Or as one file, which needs neither the proxy nor the dashboard: its trials open in a drawer.
    with bob.expect_download() as saved:
        bob.get_by_role("link", name="Save page with transcripts").click()
    saved.value.save_as(tmp_path / "run.html")
    alone = browser.new_context(offline=True).new_page()
    alone.goto((tmp_path / "run.html").as_uri())
    assert alone.inner_text("h1") == ann.inner_text("h1")
    alone.locator('.marks a[href^="#"]:visible').first.click()
    assert "Where is my parcel?" in alone.locator(".trial:target").inner_text()

    for kind, name in (("csv", "Export CSV"), ("jsonl", "Export JSONL")):
        with bob.expect_download() as exported:
            bob.get_by_role("link", name=name).click()
        exported.value.save_as(tmp_path / f"run.{kind}")
        assert len(read_trials(tmp_path / f"run.{kind}")) == run.trials
    bob.get_by_role("searchbox", name="Search").fill("parcel")
    bob.keyboard.press("Enter")
    bob.locator('a[href^="/passhat/run/"][href*="trial="]').first.click()
    assert "Where is my parcel?" in bob.inner_text("main")
    bob.goto(link)
    bob.get_by_text("Label trials").click()
    bob.get_by_role("button", name="Failed").click()
    bob.get_by_text("Kept:").wait_for()

    ann.goto(link)
    assert "bob labelled 1 trial" in done.inner_text()
    form()
    ann.get_by_label(re.compile("to delete 12 trials")).fill("shop")
    ann.get_by_role("button", name="Delete").click()
    assert ann.get_by_text("nothing is deleted").is_visible()  # its name is another
    ann.goto(link)
    form()
    ann.get_by_label(re.compile("to delete 12 trials")).fill(run.key)
    ann.get_by_role("button", name="Delete").click()
    ann.wait_for_url(f"{team}/runs?suite=shop")
    assert bob.goto(link).status == 404
    with History.open(store, read_only=True) as history:
        log = [(one.person, one.action) for one in history.changes(run.key)]
        assert [one.key for one in history.runs()] != [run.key]
    assert log == [("ann", action) for action in ("delete", "rename", "untag", "tag")]


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
