"""Subscribers: webhooks and OpenLineage backends, and the delivery of events to them."""
