"""TODO telemetry."""
