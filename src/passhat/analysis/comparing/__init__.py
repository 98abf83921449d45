"""Systems side by side, and one system over time."""
