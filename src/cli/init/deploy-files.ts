/** The deployment files of a new project: a container, and a systemd unit. Pure. */

export function deployFiles(name: string): Readonly<Record<string, string>> {
  return {
    Dockerfile: dockerText,
    '.dockerignore': 'node_modules/\n.millrace/\n.git/\n',
    [`deploy/${name}.service`]: unitText(name),
  }
}

const dockerText = `FROM node:24-slim
WORKDIR /app
COPY package*.json ./
RUN npm install --omit=dev
COPY . .
# The directory of a SQLite store; on Redis it is not needed.
RUN mkdir -p .millrace && chown node:node .millrace
VOLUME /app/.millrace
USER node
ENV NODE_ENV=production
# In this form signals reach the supervisor, which lets running jobs end. \`docker stop --time\` must be longer than the grace.
CMD ["node_modules/.bin/millrace", "work", "--grace", "25s", "--health-port", "9000", "--health-host", "0.0.0.0"]
EXPOSE 9000
`

const unitText = (name: string) => `# /etc/systemd/system/${name}.service
[Unit]
Description=${name}: Millrace workers
After=network.target

[Service]
User=${name}
WorkingDirectory=/srv/${name}
Environment=NODE_ENV=production
# MILLRACE_STORE=redis://… goes there, readable for root only.
EnvironmentFile=-/etc/${name}.env
ExecStart=/srv/${name}/node_modules/.bin/millrace work --grace 60s
# Only the supervisor gets the signal, and stops its processes. The timeout is longer than the grace.
KillMode=mixed
TimeoutStopSec=70
Restart=always
# 2: wrong configuration, which no restart mends.
RestartPreventExitStatus=2
RestartSec=5

[Install]
WantedBy=multi-user.target
`
