"""The parts of scripts/soak: traffic, what disturbs it, and what is measured meanwhile."""
