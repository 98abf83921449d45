"""Runs systems on tasks, many times, and hands back trials."""
