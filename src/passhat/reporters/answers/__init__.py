"""One file for each kind of answer: what it says, its data, rows and figures, stated once."""
