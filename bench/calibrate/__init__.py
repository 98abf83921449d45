"""Simulations that show what the statistics promise; `python -m bench.calibrate` runs them."""
