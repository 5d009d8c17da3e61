/** The files of a new project, as texts; the drill of `init` runs them. */

import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { scaffoldFiles } from '#src/cli/commands/scaffold.js'

const filesFor = (store: string) =>
  scaffoldFiles({ name: 'shop', version: '0.1.0', store, storePackages: {}, isPnpmRoot: false })
const stores = [
  'sqlite:.millrace/jobs.db',
  'redis://localhost:6379',
  'postgres://postgres@localhost/shop',
  'sqs://eu-central-1',
]

describe('a new project', () => {
  it.each(stores)('has its own namespace on %s', (store) => {
    expect(filesFor(store)['millrace.config.ts']).toContain("  namespace: 'shop',\n")
  })

  it('keeps a SQLite store outside the code, in the same place for all its programs', () => {
    const { Dockerfile, 'deploy/shop.service': unit } = filesFor('sqlite:jobs.db')

    expect(Dockerfile).toMatch(/^ENV MILLRACE_STORE=sqlite:\/data\/jobs\.db$[\s\S]*^VOLUME \/data$/m)
    expect(unit).toMatch(/^StateDirectory=shop$\nEnvironment=MILLRACE_STORE=sqlite:\/var\/lib\/shop\/jobs\.db$/m)
  })

  it.each(stores.slice(1))('has no volume and no state directory on %s', (store) => {
    const { Dockerfile, 'deploy/shop.service': unit } = filesFor(store)

    expect(Dockerfile).not.toMatch(/VOLUME|ENV MILLRACE_STORE|mkdir/)
    expect(unit).not.toMatch(/StateDirectory|Environment=MILLRACE_STORE/)
  })

  it('builds the image from the lock file if there is one, with an init process and a health check', () => {
    const { Dockerfile, '.dockerignore': ignored } = filesFor(stores[0]!)

    expect(Dockerfile).toMatch(
      /if \[ -f package-lock\.json \]; then npm ci --omit=dev; else npm install --omit=dev; fi/,
    )
    expect(Dockerfile).toMatch(/^ENTRYPOINT \["\/usr\/bin\/tini", "--"\]$/m)
    expect(Dockerfile).toMatch(/^HEALTHCHECK /m)
    expect(ignored!.split('\n')).toEqual(expect.arrayContaining(['test/', 'deploy/', '.env*', '.millrace/', '.git/']))
  })

  it('has a systemd unit that lets isolated tasks outlive a restart', () => {
    expect(filesFor(stores[1]!)['deploy/shop.service']).toMatch(/^KillMode=mixed$[\s\S]*^SendSIGKILL=no$/m)
  })

  it.each([
    "sqlite:./o'brien/jobs.db",
    'sqlite:C:\\new\\temp\\jobs.db',
    'sqlite:`a`\n.db',
    'redis://localhost:6379',
    'postgres://ada@a,b:5433/shop?listen=c:5434',
  ])('has the store %j in its configuration, as it is', (store) => {
    const [code] = /process\.env\.MILLRACE_STORE.*(?=,$)/m.exec(filesFor(store)['millrace.config.ts']!)!
    expect(runInNewContext(code, { process: { env: {} } })).toBe(store)
  })

  it.each([
    ['redis://:sesame@localhost', 'redis://localhost'],
    ['rediss://ada:sesame@localhost:6380/2', 'rediss://ada@localhost:6380/2'],
    ['redis+sentinel://a:sesame@h:1,h:2/main?sentinelPassword=sesame&db=2', 'redis+sentinel://a@h:1,h:2/main?db=2'],
    ['redis+sentinel://h:1/main?sentinelPassword=sesame', 'redis+sentinel://h:1/main'],
    ['postgres://ada:sesame@localhost/shop?schema=jobs', 'postgres://ada@localhost/shop?schema=jobs'],
  ])('has no password of %s in any file', (store, shown) => {
    const files = filesFor(store)
    expect(Object.entries(files).filter(([, text]) => text.includes('sesame'))).toEqual([])
    expect(files['millrace.config.ts']).toContain(
      `MILLRACE_STORE takes the whole address.\n  store: process.env.MILLRACE_STORE ?? '${shown}',`,
    )
    expect(files['README.md']).toMatch(/`\. The password|says otherwise\. The password/)
    expect(files['README.md']).toContain(`\`${shown}\``)
  })
})
