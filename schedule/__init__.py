"""Pure schedule rules: what a schedule means, when its next slot is, and why. No clock, no I/O but zone data."""
