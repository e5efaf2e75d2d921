"""The README's blocks of output are what the program prints; `python3 -m tests.readme` renews them.
"""
