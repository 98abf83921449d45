"""Transcripts of trials, read from the logs of other tools."""
