"""The store of every trial that ever ran."""
