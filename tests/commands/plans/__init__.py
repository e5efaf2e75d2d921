"""Commands that make, keep and show plans."""
