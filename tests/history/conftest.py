"""The stores that every law of the history holds for: a SQLite file and a PostgreSQL database."""

import pytest


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "history.db"
    return request.getfixturevalue("new_database")()
