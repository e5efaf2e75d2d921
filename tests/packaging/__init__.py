"""The script that installs the module and the one that builds its Debian package, without Ceph."""
