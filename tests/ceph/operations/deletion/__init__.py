"""OSDs that delete slowly what has left them, as those on rotating disks do."""
