"""Workloads: functions, commands and their files."""
