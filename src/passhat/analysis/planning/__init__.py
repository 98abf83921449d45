"""What to run before it is run: designs, budgets, simulated trials."""
