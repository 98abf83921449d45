"""The commands: each a journey of a few lines."""
