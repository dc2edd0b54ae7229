#!/bin/bash
# Run by the PostgreSQL image once, over an empty volume: two roles that own what is theirs and nothing else.
# The image may read this into its own shell, so what is set here stays between the parentheses. Each secret is read before
# anything is made: one that is missing ends the start instead of becoming an empty password.
(
set -eu
nightbell_password="$(cat "${SECRETS:-/run/secrets}/nightbell_password")"
temporal_password="$(cat "${SECRETS:-/run/secrets}/temporal_password")"
export nightbell_password temporal_password

psql --set=ON_ERROR_STOP=1 --no-psqlrc --quiet --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\getenv nightbell_password nightbell_password
\getenv temporal_password temporal_password
CREATE ROLE nightbell LOGIN PASSWORD :'nightbell_password';
CREATE ROLE temporal LOGIN PASSWORD :'temporal_password';
CREATE DATABASE nightbell OWNER nightbell;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE nightbell, temporal, temporal_visibility FROM PUBLIC;
SQL
)
