"""Where trials run: workers that share a run through its store, and the driver that leads it."""
