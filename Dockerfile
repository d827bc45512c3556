# The base is named by its exact version, that of the Node in package.json: the same file builds the same image.
ARG BASE=node:24.21.0-bookworm-slim

# Packages in one stage, the service in another: npm's cache and the lock file stay behind.
FROM $BASE AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# With pg, which several processes need, and without what is for other places: this image is a Node already, and no Cloudflare.
RUN npm ci --omit=dev && rm -r node_modules/node-linux-* node_modules/.bin/node node_modules/pg-cloudflare
# More than half of the packages are types, the C of SQLite, and its binaries for other systems: nothing here reads them.
RUN find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.?ts' \) -delete \
    && cd node_modules/better-sqlite3 \
    && rm -r deps src \
    && find prebuilds -type f ! -name "linux*-$(node -p process.arch).node" -delete
# Copied below as the mount point of the volume, which then belongs to the user that the service runs as.
WORKDIR /data

FROM $BASE
LABEL org.opencontainers.image.title="Quayside" \
      org.opencontainers.image.description="Connects online stores to a wholesale supplier of digital licence keys" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY config/dialects ./config/dialects
COPY data/sandbox ./data/sandbox
# What messages name.
COPY docs/troubleshooting.md ./docs/troubleshooting.md
COPY src ./src
COPY --from=packages --chown=node:node /data /data

# Loopback of a container is reached by nobody, hence the host. With the configuration named, a missing one stops the
# start; nothing ever falls back to the demo.
ENV NODE_ENV=production \
    QUAYSIDE_CONFIG=/data/config/quayside.json \
    QUAYSIDE_HOST=0.0.0.0
USER node
# The only place that can be written to.
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
    CMD ["node", "-e", "fetch('http://127.0.0.1:8080/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# A larger nursery than this makes nothing faster, and the process twice as large.
ENTRYPOINT ["node", "--max-semi-space-size=16", "--expose-gc", "/app/src/quayside.js"]
CMD ["serve", "--port", "8080"]
