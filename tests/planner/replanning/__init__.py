"""Plans after an event, from the placement that the former plan wanted."""
