"""What is demanded, and whether the trials meet it."""
