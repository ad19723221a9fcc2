"""The parts of scripts/faults: one fault a file, and what they share."""
