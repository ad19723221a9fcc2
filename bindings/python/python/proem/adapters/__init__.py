"""Adapters for frameworks. Each is a module of its own, which needs its framework installed."""
