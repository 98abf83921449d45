"""Benchmarks against peers: `python -m bench` prints ratios measured in one run."""
