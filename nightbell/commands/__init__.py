"""The commands of `nightbell`, one module a subject."""
