"""The demo cluster and the script that makes it."""
