"""For testing without a provider: a local server that speaks each wire format, and misbehaves."""

from passhat.testing.model_server import ReceivedRequest, WireServer

__all__ = ["ReceivedRequest", "WireServer"]
