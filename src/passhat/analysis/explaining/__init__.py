"""Why runs fail: what failing runs do that passing runs of the same task do not."""
