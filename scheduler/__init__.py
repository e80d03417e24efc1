"""The scheduler process: decides what is due, keeps the ledger, and owns the only database connection."""
