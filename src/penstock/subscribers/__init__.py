"""Webhooks and OpenLineage backends, and the delivery to them."""
