"""passhat inside other tools (Inspect, promptfoo, OpenTelemetry, ...), and tau2-bench inside it."""

# The tools are absent where types are checked, so their decorators and base classes have no types
# there: that is what every `type: ignore[..., unused-ignore]` in this package is for.
