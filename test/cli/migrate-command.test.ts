import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { printed, run, runJson } from './command-in-process.js'
import { project, projectFiles } from './project.js'

let server: PostgresServer
beforeAll(async () => {
  server = await PostgresServer.start()
}, 60_000)
afterAll(() => server.stop())

const where = (schema: string) => ({
  cwd: project(projectFiles),
  env: { MILLRACE_STORE: `${server.url}?schema=${schema}` },
})

describe('migrate', () => {
  it('makes what a Postgres store needs, and says what it made', async () => {
    const made = await printed('migrate --role postgres --enqueue-role postgres', where('made'))
    const again = await printed('migrate', where('made'))

    const text = server.url.replace('?', '')
    expect(made).toEqual([
      expect.stringMatching(/: made the schema 'made', with its tables and \d+ functions\.$/),
      "role 'postgres' may run mills and workers.",
      "role 'postgres' may enqueue by SQL.",
    ])
    expect(again).toEqual([`${text}: the schema 'made' has all that this version of Millrace needs.`])
    expect(await runJson('migrate --role postgres', where('made'))).toEqual({
      ...{ store: text, schema: 'made', isNew: false, functions: [], roles: ['postgres'] },
    })
  })

  it('with --sql prints the SQL and nothing else, and asks no server', async () => {
    const env = { MILLRACE_STORE: 'postgres://app@127.0.0.1:1/nowhere' }
    const { code, stdout, stderr } = await run('migrate --sql --role app', { cwd: project(projectFiles), env })

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^BEGIN;\n/)
    expect(stdout).toMatch(/\nGRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "millrace" TO "app";\nCOMMIT;\n$/)
    expect(await runJson('migrate --sql --role app', { cwd: project(projectFiles), env })).toEqual({
      ...{ store: env.MILLRACE_STORE, sql: stdout },
    })
  })

  it('ends with 2 for a role that does not exist, and says how to make it', async () => {
    expect(await run('migrate --role nobody', where('unmade'))).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('CREATE ROLE "nobody"'),
    })
  })

  it('says that another store needs none', async () => {
    const of = (store: string) => ({ cwd: project(projectFiles), env: { MILLRACE_STORE: store } })

    expect(await printed('migrate --role app', of('sqlite:jobs.db'))).toEqual([
      'sqlite:jobs.db needs no migration: it makes what it needs when it is opened.',
    ])
    expect(await printed('migrate --sql', of('redis://127.0.0.1:1'))).toEqual([
      '-- redis://127.0.0.1:1 needs no migration: it makes what it needs when it is opened.',
    ])
    expect(await printed('migrate', of('sqs://eu-central-1'))).toEqual([
      'sqs://eu-central-1 needs no migration: `millrace queues create` makes its queues.',
    ])
    expect(await runJson('migrate', of('memory:'))).toEqual({ store: 'memory:', functions: [], roles: [] })
  })
})
