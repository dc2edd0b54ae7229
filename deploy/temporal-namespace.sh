#!/bin/sh
# Makes the namespace if it is not there yet. A refusal ends this container, and its restart tries again.
set -eu
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 \
    || temporal operator namespace create --retention 30d --namespace "$TEMPORAL_NAMESPACE"
