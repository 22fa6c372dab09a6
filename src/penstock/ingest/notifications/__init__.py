"""Telling people: mail, callbacks, reports."""
