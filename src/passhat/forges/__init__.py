"""Pull requests and merge requests: where a verdict is read by the people who review a change."""
