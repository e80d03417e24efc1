"""The launcher: starts executors, hands runs to them, adopts what an earlier launcher left, ends what hangs."""
