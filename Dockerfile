# Node's long-term support line, pinned by version and by the digest of its index, which is the same for every architecture. A new version:
# `docker buildx imagetools inspect node:<tag>` shows its digest. The tests run on the Node of package.json; `engines` says what both must meet.
ARG NODE_IMAGE=node:24.21.0-alpine3.24@sha256:ebfe2f90462722a7a4de65e91990e97fe0d401c70e0e762c5b53302f905ec1c1

# The console is the one thing that is built. Nothing of what builds it reaches the image but its files.
FROM ${NODE_IMAGE} AS console
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json vite.config.ts ./
COPY src/client ./src/client
COPY src/console ./src/console
RUN npm run build:console

# Dependencies change less often than source: a layer of their own. Left out are the embedded Postgres, the only optional dependency, because
# NODE_ENV=production demands real stores, and what Node never reads: types, source maps, documents. No package here needs an install script.
FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --omit=optional --ignore-scripts
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.md' \) -delete

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
# Owned by root and not writable for the user below: the process can't change what it runs.
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY sql ./sql
COPY src ./src
COPY --from=console /app/dist/console ./dist/console
COPY bin ./bin
# `docker run … tollgate keys list` is `node tollgate keys list`; a shell and `docker exec` find the command in the PATH.
RUN ln -s bin/tollgate.js tollgate
ENV PATH=/app:$PATH
# The user `node` of the official image, by number, so that Kubernetes can tell that it is not root. Nothing is written to the
# file system: run with a read-only root (`docker run --read-only`, `readOnlyRootFilesystem: true`).
USER 1000:1000
EXPOSE 8080 9090
# SIGTERM starts the drain (SHUTDOWN_DELAY_MS + SHUTDOWN_DRAIN_MS) and then the last writes: `docker stop --timeout 85`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT || 9090}/livez`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node"]
CMD ["src/main.ts"]
