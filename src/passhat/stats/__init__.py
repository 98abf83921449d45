"""Numbers in, frozen results out: every statistic that passhat states."""
