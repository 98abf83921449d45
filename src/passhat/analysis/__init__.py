"""What the trials mean: reports, comparisons, gates, plans."""
