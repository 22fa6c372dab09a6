"""Who may touch which lot: status rows, claims, finding work, and why something does not run."""
