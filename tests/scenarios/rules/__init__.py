"""The independent rules of safety and of intent, which every upmap command of a run is held to."""
