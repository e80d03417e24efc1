"""What Cronward's processes share: messages, names, clocks, files that two of them touch. Imports no other package."""
