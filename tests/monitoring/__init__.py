"""Tests of the dashboard and the alert rules, where promtool is installed by promtool itself."""
