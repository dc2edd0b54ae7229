"""Where it is decided: PostgreSQL tables, constraints, and one transaction per decision."""
