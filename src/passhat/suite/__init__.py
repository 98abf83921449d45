"""From a suite file to what shall be run and what is demanded."""
