/** The scaffold: the files of a new project: one task, one schedule, one test and its deployment. Pure. */

import { literal } from '../code-literal.js'

export interface ScaffoldRequest {
  /** The name of the project, valid as the name of a package. */
  readonly name: string
  /** The version of Millrace that it begins with. */
  readonly version: string
  /** Its address. No file gets the password of it. */
  readonly store: string
  /** Packages that the store needs, with their versions. */
  readonly storePackages: Readonly<Record<string, string>>
  /** Whether pnpm installs it, and no workspace above it decides what pnpm may run. */
  readonly isPnpmRoot: boolean
}

/** The texts by their paths, without `package.json`. */
export function scaffoldFiles(request: ScaffoldRequest): Readonly<Record<string, string>> {
  return {
    'millrace.config.ts': configText(request),
    'tasks/send-email.ts': taskText,
    'test/send-email.test.ts': testText,
    'enqueue.ts': enqueueText,
    'tsconfig.json': tsconfigText,
    '.gitignore': 'node_modules/\n.millrace/\n.env*\n',
    'README.md': readmeText(request),
    ...(request.isPnpmRoot && { 'pnpm-workspace.yaml': pnpmText }),
    ...deployFiles(request),
  }
}

/**
 * The `package.json` with the missing parts added, or a new one; undefined if nothing is missing. Existing parts are
 * kept.
 */
export function scaffoldPackage(
  { name, version, storePackages }: ScaffoldRequest,
  present: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const wanted: Readonly<Record<string, unknown>> = {
    name,
    private: true,
    type: 'module',
    scripts: {
      work: 'millrace work',
      dev: 'millrace work --watch',
      test: 'node --import jiti/register --test test/send-email.test.ts',
      types: 'tsc',
    },
    dependencies: { millrace: `^${version}`, ...storePackages },
    devDependencies: { '@types/node': '^20.19.0', jiti: '^2.7.0', typescript: '^5.9.0 || ^6.0.0' },
  }
  if (present === undefined) return wanted
  const filled: Record<string, unknown> = { ...present }
  for (const key of ['type', 'scripts', 'dependencies', 'devDependencies'])
    filled[key] = filledIn(present[key], wanted[key])
  // An existing dependency is not added as a development dependency.
  for (const name of Object.keys(Object(filled['dependencies'])))
    delete (filled['devDependencies'] as Record<string, unknown>)[name]
  return JSON.stringify(filled) === JSON.stringify(present) ? undefined : filled
}

/** The address of a store without its passwords, for files that are committed. */
export function withoutPasswords(store: string): string {
  const [address = '', ...query] = store.replace(/^([^:]+:\/\/[^:@/?#]*):[^@/?#]*@/, '$1@').split('?')
  const rest = query
    .join('?')
    .split('&')
    .filter((part) => part !== '' && !new URLSearchParams(part).has('sentinelPassword'))
  return [address.replace('://@', '://'), ...(rest.length > 0 ? [rest.join('&')] : [])].join('?')
}

/** The placeholder that `npm init` writes. */
const noTest = 'echo "Error: no test specified" && exit 1'

function filledIn(present: unknown, wanted: unknown): unknown {
  if (typeof present !== 'object' || present === null) return present ?? wanted
  const kept = Object.entries(present).filter(([, value]) => value !== noTest)
  return { ...(wanted as object), ...Object.fromEntries(kept) }
}

const configText = ({ name, store }: ScaffoldRequest) => `import { millrace } from 'millrace'
import { sendEmail } from './tasks/send-email.ts'

/** The mill that \`millrace work\`, every other command and your programs load. All options: node_modules/millrace/docs/configuration.md */
export default millrace({
  ${storeRemark(store)}store: process.env.MILLRACE_STORE ?? ${literal(withoutPasswords(store))},
  // The prefix of all keys in Redis and of all queues in SQS, the schema in Postgres: it keeps projects apart that share a server.
  namespace: '${name}',
  queues: { default: { weight: 10 } },
  tasks: [sendEmail],${store.startsWith('sqs:') ? '' : scheduleText}
})
`

const storeRemark = (store: string) =>
  withoutPasswords(store) === store
    ? ''
    : '// Without its password, since this file is committed: MILLRACE_STORE takes the whole address.\n  '

/** SQS keeps no schedules. */
const scheduleText = `
  schedules: {
    // Each Monday at 9.
    digest: {
      cron: '0 9 * * 1',
      timeZone: 'Europe/Zurich',
      task: sendEmail,
      input: { to: 'team@example.com', subject: 'The week' },
    },
  },`

const taskText = `import { defineTask } from 'millrace'

interface Email {
  to: string
  subject: string
}

export const sendEmail = defineTask({
  name: 'send-email',
  timeLimit: '30s',
  retry: { max: 4 },
  async run({ to, subject }: Email, ctx) {
    console.log(\`"\${subject}" goes to \${to}, attempt \${ctx.job.attempt}\`)
    return { messageId: \`<\${ctx.job.id}@example.com>\` }
  },
})
`

const testText = `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testMill } from 'millrace/testing'
import { sendEmail } from '../tasks/send-email.ts'

test('an email is sent', async () => {
  const mill = testMill({ tasks: [sendEmail] })
  const { id } = await mill.enqueue(sendEmail, { to: 'ada@example.com', subject: 'Hello' })
  const [ran] = await mill.drain()
  assert.deepEqual(ran?.result, { messageId: \`<\${id}@example.com>\` })
})
`

const enqueueText = `import mill from './millrace.config.ts'
import { sendEmail } from './tasks/send-email.ts'

const job = await mill.enqueue(sendEmail, { to: 'ada@example.com', subject: 'Hello' })
console.log(\`job \${job.id} is in queue \${job.queue}\`)
await mill.close()
`

const tsconfigText = `{
  "compilerOptions": {
    "target": "es2023",
    "lib": ["es2023"],
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "skipLibCheck": true
  },
  "include": ["*.ts", "tasks", "test"]
}
`

/** Without it `pnpm install` ends with 1: it asks what to do with the install script of this package. */
const pnpmText = `# SQLite comes prebuilt: its install script need not run.
allowBuilds:
  '@photostructure/sqlite': false
`

const readmeText = ({ name, store }: ScaffoldRequest) => `# ${name}

\`\`\`sh
npm install
npm test                # the task, on a store in memory whose clock the test moves
npx tsc                 # the types
npm run dev             # a worker that starts anew when a file changes, until Ctrl-C
\`\`\`

In another terminal:

\`\`\`sh
npx millrace enqueue send-email '{"to":"ada@example.com","subject":"Hello"}'
npx jiti enqueue.ts     # the same from a program
npx millrace stats
npx millrace schedules list
npx millrace --help
\`\`\`

| file                       |                                                                        |
| -------------------------- | ---------------------------------------------------------------------- |
| \`millrace.config.ts\`       | store, queues, tasks and schedules                                     |
| \`tasks/send-email.ts\`      | the task: its name, its options, what it does                          |
| \`test/send-email.test.ts\`  | runs the task by the code of a worker                                  |
| \`enqueue.ts\`               | how a program enqueues                                                 |
| \`Dockerfile\`, \`deploy/\`    | the worker in a container, and under systemd                           |

Jobs live in \`${withoutPasswords(store)}\` unless \`MILLRACE_STORE\` says otherwise.${
  withoutPasswords(store) === store
    ? ''
    : ' The password is not in these files: set that variable to the whole address.'
}
`

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
