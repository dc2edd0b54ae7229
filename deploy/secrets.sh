#!/bin/sh
# Prints a `.env` with passwords made here and now: sh deploy/secrets.sh > .env
set -eu
umask 077

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

nightbell="$(password)"
cat <<ENV
POSTGRES_PASSWORD=$(password)
TEMPORAL_DATABASE_PASSWORD=$(password)
NIGHTBELL_DATABASE_PASSWORD=$nightbell
NIGHTBELL_DATABASE_URL=postgresql://nightbell:$nightbell@postgresql:5432/nightbell
ENV
