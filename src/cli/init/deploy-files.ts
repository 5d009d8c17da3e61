/** The deployment files of a new project: a container, and a systemd unit. Pure. */

export function deployFiles({
  name,
  store,
}: {
  readonly name: string
  readonly store: string
}): Readonly<Record<string, string>> {
  const isFile = store.startsWith('sqlite:')
  return {
    Dockerfile: dockerText(isFile),
    '.dockerignore': ignoredText,
    [`deploy/${name}.service`]: unitText(name, isFile),
  }
}

const ignoredText = `node_modules/
.millrace/
.git/
.env*
test/
deploy/
Dockerfile
.dockerignore
`

const dockerText = (isFile: boolean) => `FROM node:24-slim
# Process 1: it hands signals on, and takes in the processes that handlers leave behind.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["/usr/bin/tini", "--"]
WORKDIR /app
ENV NODE_ENV=production
COPY package*.json ./
RUN if [ -f package-lock.json ]; then npm ci --omit=dev; else npm install --omit=dev; fi
COPY . .
${isFile ? volumeText : ''}USER node
# In this form signals reach the supervisor, which lets running jobs end. \`docker stop --time\` must be longer than the grace.
CMD ["node_modules/.bin/millrace", "work", "--grace", "25s", "--health-port", "9000", "--health-host", "0.0.0.0"]
EXPOSE 9000
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \\
  CMD ["node", "-e", "fetch('http://127.0.0.1:9000/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
`

const volumeText = `# The SQLite store is outside the code. Other containers of the project need the same variable and volume.
ENV MILLRACE_STORE=sqlite:/data/jobs.db
RUN mkdir /data && chown node:node /data
VOLUME /data
`

const unitText = (name: string, isFile: boolean) => `# /etc/systemd/system/${name}.service
[Unit]
Description=${name}: Millrace workers
After=network.target

[Service]
User=${name}
WorkingDirectory=/srv/${name}
Environment=NODE_ENV=production
${isFile ? stateText(name) : ''}# ${isFile ? 'Secrets go there' : 'MILLRACE_STORE and secrets go there'}, readable for root only.
EnvironmentFile=-/etc/${name}.env
ExecStart=/srv/${name}/node_modules/.bin/millrace work --grace 60s
# Only the supervisor gets the signal, and stops its processes. The timeout is longer than the grace.
KillMode=mixed
TimeoutStopSec=70
# Isolated tasks outlive a restart: their processes go on, and the next worker adopts them.
SendSIGKILL=no
Restart=always
# 2: wrong configuration, which no restart mends.
RestartPreventExitStatus=2
RestartSec=5
# No PrivateTmp: an isolated task that outlives a restart would lose its temporary files.
NoNewPrivileges=yes
ProtectSystem=full
ProtectHome=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictSUIDSGID=yes

[Install]
WantedBy=multi-user.target
`

const stateText = (
  name: string,
) => `# The SQLite store is outside the code, in a folder that systemd makes for the user. Every other program of the project needs
# the same variable.
StateDirectory=${name}
Environment=MILLRACE_STORE=sqlite:/var/lib/${name}/jobs.db
`
