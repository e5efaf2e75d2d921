"""Plans that mend what breaks its CRUSH rule."""
