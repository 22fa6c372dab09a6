"""Speed-ups that cost clarity. Each module names the benchmark that justifies it."""
