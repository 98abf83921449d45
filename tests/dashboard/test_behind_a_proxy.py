"""The dashboard of a team's PostgreSQL store, behind a proxy that authenticates people."""

import base64
import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from html import unescape
from urllib.parse import urlencode

import pytest

from passhat.dashboard.server import make_access
from passhat.errors import ArgumentError, InputError
from passhat.history import History
from passhat.records import Outcome, Trial

TOKEN = "a-token-that-the-user-chose"


@pytest.fixture
def site(serve_site, new_database):
    served = serve_site(_filled(new_database()))
    served.access.token, served.access.reusable = TOKEN, True
    return served


def test_a_proxy_that_knows_the_token_is_let_in_and_sees_the_store(site):
    status, _, text = site.ask("/", headers={"x-passhat-proxy": TOKEN})
    assert status == 200
    assert "the team&#39;s suite" in text
    status, _, text = site.ask("/runs", headers={"x-passhat-proxy": TOKEN})
    assert status == 200


@pytest.mark.parametrize("proof", ["", "wrong", TOKEN[:-1]])
def test_a_browser_that_sends_the_header_itself_is_not(site, proof):
    assert site.ask("/", headers={"x-passhat-proxy": proof})[0] == 401


def test_a_token_that_was_made_up_for_one_browser_opens_nothing_to_a_proxy(site):
    site.access.reusable = False
    assert site.ask("/", headers={"x-passhat-proxy": TOKEN})[0] == 401


@pytest.fixture
def named(site):
    """A site whose proxy must say whom it has authenticated."""
    site.access.person_header = "X-Forwarded-User"
    return site


def test_the_person_whom_the_proxy_names_is_shown(named):
    headers = {"x-passhat-proxy": TOKEN, "x-forwarded-user": "ann <b>"}
    status, _, text = named.ask("/", headers=headers)
    assert status == 200
    assert "data-person>ann &lt;b&gt;<" in text
    assert "data-person" not in named.get("/")[2]  # of no other request


@pytest.mark.parametrize("name", [None, "", "  "])
def test_a_proxy_that_names_nobody_is_refused(named, name):
    headers = {"x-passhat-proxy": TOKEN} | ({} if name is None else {"x-forwarded-user": name})
    status, _, text = named.ask("/", headers=headers)
    assert (status, "does not say who you are" in text) == (401, True)


def test_a_name_without_the_token_of_the_proxy_opens_nothing(named):
    assert named.ask("/", headers={"x-forwarded-user": "ann"})[0] == 401


def test_a_header_for_names_needs_a_token(tmp_path):
    with pytest.raises(InputError, match="PASSHAT_TOKEN"):
        make_access("127.0.0.1", exposed=False, token=None, person_header="X-Forwarded-User")
    with pytest.raises(ArgumentError, match="name of a header"):
        make_access("127.0.0.1", exposed=False, token=TOKEN, person_header="no header\r\n")
    access = make_access("127.0.0.1", exposed=False, token=TOKEN, person_header="X-User")
    assert access.person_header == "X-User"


def test_an_address_for_a_proxy_is_one_and_needs_a_token():
    for wrong in ("evals.example", "ftp://evals.example", "https://", "https://evals.example/?a=b"):
        with pytest.raises(ArgumentError, match="address of the proxy"):
            make_access("127.0.0.1", exposed=False, token=TOKEN, public_url=wrong)
    with pytest.raises(InputError, match="PASSHAT_TOKEN"):
        make_access("127.0.0.1", exposed=False, token=None, public_url="https://evals.example")


def test_the_origin_of_a_proxy_is_ours_only_through_the_proxy(site):
    site.access.person_header, site.access.public_url = "X-User", "https://evals.example/team"
    trusted = {"x-passhat-proxy": TOKEN, "x-user": "ann"}
    token = {"token": site.access.form_token, "do": "note", "text": "seen"}
    key = re.search(r"/team/run/(\w+)", site.ask("/runs", headers=trusted)[2])[1]

    def post(**headers):
        given = {"content-type": "application/x-www-form-urlencoded", **headers}
        path = f"/run/{key}/change"
        return site.ask(path, method="POST", headers=given, body=urlencode(token))

    status, headers, _ = post(**trusted, origin="https://evals.example")
    assert (status, headers["location"]) == (303, f"/team/run/{key}")
    assert "ann" in site.ask(f"/run/{key}", headers=trusted)[2]
    assert post(**trusted, origin="https://evil.example")[0] == 403
    assert post(**trusted)[0] == 403
    assert (
        post(**trusted, origin="https://evals.example", **{"sec-fetch-site": "cross-site"})[0]
        == 403
    )
    assert post(**site.cookie, origin="https://evals.example")[0] == 403
    direct = site.get(f"/run/{key}")[2]
    assert (f'"/run/{key}' in direct, "/team/" in direct) == (True, False)


def test_every_link_leads_through_the_path_of_the_proxy(site):
    site.access.person_header, site.access.public_url = "X-User", "https://evals.example/team/"
    trusted = {"x-passhat-proxy": TOKEN, "x-user": "ann"}
    seen, left = set(), ["/team/"]
    while left:
        path = left.pop()
        status, _, text = site.ask(path.removeprefix("/team"), headers=trusted)
        assert status == 200, path
        if "html>" not in text:
            continue
        links = re.findall(r'(?:href|action|data-live|data-copy)="(/[^"]*)"', text)
        assert [link for link in links if not link.startswith("/team/")] == [], path
        new = {unescape(link).partition("#")[0] for link in links} - seen
        seen |= new
        left += [link for link in new if not link.endswith(("/events", "/change"))]
    assert len(seen) > 15


def test_nothing_can_be_changed_through_the_proxy(site):
    status, headers, _ = site.ask("/", method="POST", headers={"x-passhat-proxy": TOKEN})
    assert (status, headers["allow"]) == (405, "GET, HEAD")


NGINX = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      auth_basic "team"; auth_basic_user_file {folder}/people;
      proxy_pass http://127.0.0.1:{behind};
      proxy_set_header Host 127.0.0.1:{behind};
      proxy_set_header Origin "";
      proxy_set_header X-Passhat-Proxy {token};
      proxy_set_header X-Forwarded-User $remote_user;
    }}
  }}
}}
"""
ANN = {"authorization": f"Basic {base64.b64encode(b'ann:right').decode()}"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def team(serve_site, new_database, tmp_path):
    """A real nginx that lets ann in, before a dashboard whose database role can only read."""
    if shutil.which("nginx") is None:
        pytest.skip("no nginx here (Debian: apt-get install nginx-light)")
    site = serve_site(_read_only(_filled(new_database())))
    site.access.token, site.access.reusable = TOKEN, True
    site.access.person_header = "X-Forwarded-User"
    port = free_port()
    config = NGINX.format(folder=tmp_path, port=port, behind=site.port, token=TOKEN)
    if os.geteuid() == 0:  # its workers would be somebody who cannot read this folder
        config = f"user root;{config}"
    (tmp_path / "nginx.conf").write_text(config)
    (tmp_path / "people").write_text("ann:{PLAIN}right\n")
    process = subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)

    def ask(path, *, method="GET", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    yield ask
    process.terminate()
    process.wait()


def _filled(address):
    with History.open(address) as history:
        run = history.start_run("the team's suite")
        history.add_trials(
            run, [Trial(system="a", task="t", trial=i, outcome=Outcome(i % 2)) for i in range(6)]
        )
        history.finish_run(run)
    return address


def _read_only(address):
    """The same store for a role that has SELECT and nothing else."""
    import psycopg

    schema = address.rpartition("%3D")[2]
    role = f"team_{schema}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}")
    return address.replace("passhat@", f"{role}@", 1)


def test_a_real_proxy_lets_in_whom_it_knows_and_a_role_that_only_reads_is_enough(team):
    assert team("/")[0] == 401
    for page in ("/", "/runs", "/search?q=team"):
        status, text = team(page, headers=ANN)
        assert (status, "the team&#39;s suite" in text) == (200, True)
        assert "data-person>ann<" in text


def test_a_header_that_a_browser_sends_does_not_get_past_a_real_proxy(team):
    assert team("/", headers={"x-passhat-proxy": TOKEN})[0] == 401
    forged = {"x-passhat-proxy": "forged", "x-forwarded-user": "root"}
    status, text = team("/", headers={**ANN, **forged})  # both are replaced
    assert (status, "data-person>ann<" in text) == (200, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_is_written_through_a_real_proxy(team, method):
    assert team("/", method=method, headers=ANN)[0] == 405
