"""One format a file; no reader knows another."""
