"""One file for each format: how any answer is written in it."""
