"""The local site over everything that ever ran: server-rendered, for the person who started it."""
