"""Two hosts are added: balancing after a freeze beside balancing what CRUSH has moved."""
