"""The process that carries out one run at a time. Started by the launcher, a pool of them is kept ready."""
