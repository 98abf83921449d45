"""The local site over everything that ever ran."""
