"""What was measured about the trials of each system."""
