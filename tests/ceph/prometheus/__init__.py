"""A real Prometheus beside a real cluster; skipped where Debian's prometheus is not installed."""
