"""The Debian package on a cluster whose mgr reads the system's own module folder."""
