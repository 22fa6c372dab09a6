"""Explanations of why a lot is not processed."""
