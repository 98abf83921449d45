"""The facts: tasks, systems, trials, and the table of trials the analysis reads."""
