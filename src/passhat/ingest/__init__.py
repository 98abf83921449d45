"""From anybody's result files to Trials."""
