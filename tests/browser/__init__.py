"""Tests of the page in a real browser. One package, so that all tests share one browser."""
