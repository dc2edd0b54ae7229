#!/bin/sh
# Brings Temporal's two databases to the schema of this version of it. Safe to repeat: both steps go on from what is there.
set -eu
SQL_PASSWORD="$(cat /run/secrets/temporal_password)"
export SQL_PASSWORD

for half in temporal visibility; do
    database=temporal
    [ "$half" = visibility ] && database=temporal_visibility
    tool="temporal-sql-tool --plugin postgres12 --ep postgresql -p 5432 -u temporal --db $database"
    $tool setup-schema -v 0.0
    $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$half/versioned"
done
