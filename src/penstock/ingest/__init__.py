"""What arrives: batches and their jobs, stage by stage, through a durable queue."""
