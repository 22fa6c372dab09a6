"""Lots: the chunks of a dataset, with their manifests and their outbox."""
