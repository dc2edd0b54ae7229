"""How it is reached: thin Temporal activities, each of them one call of the store."""
