"""passhat inside other tools: Inspect, pydantic-evals, deepeval, promptfoo and OpenTelemetry."""

# The tools are absent where types are checked, so their decorators and base classes have no types
# there: that is what every `type: ignore[..., unused-ignore]` in this package is for.
