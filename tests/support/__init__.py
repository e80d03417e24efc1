"""What tests of real processes share: a scratch installation, its clients, and oracles that do not trust it."""
