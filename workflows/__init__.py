"""When it is asked: deterministic timers and mailboxes. No decisions."""
