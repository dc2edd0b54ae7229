#!/bin/bash
# Run by the PostgreSQL image once, over an empty volume: two roles that own what is theirs and nothing else.
set -eu

psql --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set=nightbell_password="$(cat "${SECRETS:-/run/secrets}/nightbell_password")" \
    --set=temporal_password="$(cat "${SECRETS:-/run/secrets}/temporal_password")" <<'SQL'
CREATE ROLE nightbell LOGIN PASSWORD :'nightbell_password';
CREATE ROLE temporal LOGIN PASSWORD :'temporal_password';
CREATE DATABASE nightbell OWNER nightbell;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE nightbell, temporal, temporal_visibility FROM PUBLIC;
SQL
