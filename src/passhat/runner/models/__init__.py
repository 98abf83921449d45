"""Models: one provider a file, and the wrappers that record, replay, retry and break them."""
