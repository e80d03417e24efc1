"""Benchmarks of the real processes. Each ends with one line of JSON; docs/development.md says what the figures mean."""
