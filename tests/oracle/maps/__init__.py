"""Binary maps of Ceph for the oracle: shapes, specs, random maps and moves."""
