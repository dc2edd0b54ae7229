"""Schedules that were written for other schedulers, read and carried over as Schedule files."""
