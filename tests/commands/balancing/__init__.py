"""Commands that move data, and automatic balancing to its end."""
