"""The dashboard of a team's PostgreSQL store, behind a proxy that authenticates people."""

import pytest

from passhat.history import History
from passhat.records import Outcome, Trial

TOKEN = "a-token-that-the-user-chose"


@pytest.fixture
def site(serve_site, new_database):
    address = new_database()
    with History.open(address) as history:
        run = history.start_run("the team's suite")
        history.add_trials(
            run, [Trial(system="a", task="t", trial=i, outcome=Outcome(i % 2)) for i in range(6)]
        )
        history.finish_run(run)
    served = serve_site(address)
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


def test_nothing_can_be_changed_through_the_proxy(site):
    status, headers, _ = site.ask("/", method="POST", headers={"x-passhat-proxy": TOKEN})
    assert (status, headers["allow"]) == (405, "GET, HEAD")
