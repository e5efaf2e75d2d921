"""Programs and helpers around a cluster of real daemons: clients, events, watchers, commands."""
