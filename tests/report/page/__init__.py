"""The parts of the page that `report` writes."""
