"""`passhat run`, as a user meets it: from a suite to a report and an exit code."""


def test_the_first_suite_runs_at_once_with_bare_passhat_run(shell):
    assert shell("init").returncode == 0
    done = shell("run", "--runs", "2")
    assert done.returncode in (0, 1, 4), done.stderr
    assert "3 tasks × 2 runs, 6 trials" in done.stdout
    assert (shell.directory / ".passhat" / "history.db").is_file()
