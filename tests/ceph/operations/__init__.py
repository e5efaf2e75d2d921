"""Operations on real daemons: what operators do beside balancing."""
