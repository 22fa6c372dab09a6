"""Payloads of depositors: allowed places, fetching and reading."""
