# Node's long-term support line, pinned by version and by the digest of its index, which is the same for every architecture. A new version:
# `docker buildx imagetools inspect node:<tag>` shows its digest. The tests run on the Node of package.json; `engines` says what both must meet.
ARG NODE_IMAGE=node:24.21.0-alpine3.24@sha256:ebfe2f90462722a7a4de65e91990e97fe0d401c70e0e762c5b53302f905ec1c1

# The console and the pages for consumers are all that is built. Nothing of what builds it reaches the image but its files.
FROM ${NODE_IMAGE} AS console
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json vite.config.ts ./
COPY src/client ./src/client
COPY src/paths ./src/paths
COPY src/limiter/request-limits.ts ./src/limiter/
COPY src/events/event-types.ts ./src/events/
COPY src/console ./src/console
COPY src/portal ./src/portal
RUN npm run build:console

# Dependencies change less often than source: a layer of their own. Left out are the embedded Postgres, the only optional dependency, because
# NODE_ENV=production demands real stores, and what Node never reads: types, source maps, documents. No package here needs an install script.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' \) -delete

FROM ${NODE_IMAGE} AS app
ENV NODE_ENV=production
ENV NODE_COMPILE_CACHE=/app/node_modules/.cache/tollgate
WORKDIR /app
# Owned by root and not writable for the user below: the process can't change what it runs.
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY sql ./sql
COPY src ./src
COPY --from=console /app/dist/console ./dist/console
COPY --from=console /app/dist/portal ./dist/portal
COPY bin ./bin
# What `tollgate size` calculates with.
COPY docs/scale.json ./docs/
# `docker run … tollgate keys list` is `node tollgate keys list`; a shell and `docker exec` find the command in the PATH.
RUN ln -s bin/tollgate.js tollgate
ENV PATH=/app:$PATH

# What Node compiles and strips of types is kept for each start, which takes half the CPU then, and 16 MB less. Node keeps it apart for each user, so the
# one of the image compiles, and for each kind of processor (`v8.cachedDataVersionTag()`): on another than the builder's, a start compiles by itself.
FROM app AS compiled
RUN mkdir -p -m 777 node_modules/.cache/tollgate
USER 1000:1000
RUN NODE_ENV=development BACKEND_URL=http://127.0.0.1 node src/main.ts --check
USER root
RUN chmod -R a+rX,go-w node_modules/.cache

FROM app
# Owned by root like the rest, because what is kept there runs.
COPY --chown=0:0 --from=compiled /app/node_modules/.cache ./node_modules/.cache
# The user `node` of the official image, by number, so that Kubernetes can tell that it is not root. Nothing is written to the
# file system: run with a read-only root (`docker run --read-only`, `readOnlyRootFilesystem: true`).
USER 1000:1000
EXPOSE 8080 9090
# SIGTERM starts the drain (SHUTDOWN_DELAY_MS + SHUTDOWN_DRAIN_MS) and then the last writes: `docker stop --timeout 85`.
STOPSIGNAL SIGTERM
# The timeout is for a Node that starts on a busy machine.
HEALTHCHECK --interval=10s --timeout=10s --start-period=20s --retries=3 \
  CMD ["node", "-e", "const { OPS_HOST, HOST, OPS_PORT } = process.env; http.get({ host: OPS_HOST || HOST || '127.0.0.1', port: OPS_PORT || 9090, path: '/livez' }, r => process.exit(r.statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
ENTRYPOINT ["node"]
# One thread compiles and collects beside the one that serves: docs/performance.md, "Threads".
CMD ["--v8-pool-size=1", "src/main.ts"]
