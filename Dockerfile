# One image for every role: `nightbell migrate`, `nightbell worker`, and each command an operator runs.
# Nothing is installed that the lock does not name with its hash, and no server is in it.

ARG PYTHON=3.13-slim-trixie
ARG POSTGRES=18-trixie

FROM postgres:${POSTGRES} AS postgresql

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/nightbell && /opt/nightbell/bin/python -m pip install --require-hashes -r requirements.txt
RUN python -m venv /opt/hatch && /opt/hatch/bin/python -m pip install --require-hashes -r requirements-build.txt
COPY pyproject.toml README.md LICENSE ./
COPY law law
COPY store store
COPY activities activities
COPY workflows workflows
COPY patterns patterns
COPY nightbell nightbell
COPY schedules schedules
RUN /opt/hatch/bin/python -m hatchling build --target wheel --directory dist \
    && /opt/nightbell/bin/python -m pip install --no-deps --no-index dist/*.whl

FROM python:${PYTHON}
# The nightly rite runs pg_dump, which must not be older than the server: so it comes from the server's own image, with its
# libpq; Debian's libpq5 brings the libraries under both. The last line fails the build, not the first night.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libpq5 liblz4-1 libzstd1 zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/nightbell --create-home nightbell \
    && chmod 700 /var/lib/nightbell
COPY --from=postgresql /usr/lib/postgresql/18/bin/pg_dump /usr/lib/postgresql/18/bin/pg_restore /usr/local/bin/
COPY --from=postgresql /usr/lib/*-linux-gnu/libpq.so.5* /usr/local/lib/
RUN ldconfig && pg_dump --version && pg_restore --version
COPY --from=build /opt/nightbell /opt/nightbell
ENV PATH=/opt/nightbell/bin:$PATH NIGHTBELL_HOME=/var/lib/nightbell PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER nightbell
WORKDIR /var/lib/nightbell
ENTRYPOINT ["nightbell"]
CMD ["worker"]
