"""How moves are found."""
