"""What every command answers, recorded in all eight states of one simulated cluster, in an outage,
while OSDs are drained, and beside an expansion.

A change of a screen is recorded anew with

    pytest tests/screens --rewrite-screens

and looked at with `git diff tests/screens/golden`. On a conflict in a recorded file take either
side, or both sides' lines behind `$`, and record anew. A new command is one line in SCREENS of
`screens.py`; what happens line by line is a story, see `test_stories.py`.
"""
