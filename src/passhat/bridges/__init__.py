"""passhat inside other tools: Inspect, pydantic-evals, deepeval, promptfoo and OpenTelemetry."""
