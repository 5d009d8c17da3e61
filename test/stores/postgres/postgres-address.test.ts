import { describe, expect, it } from 'vitest'
import { postgresAddress, postgresAddressText } from '#src/stores/postgres/client/postgres-address.js'

describe('a Postgres address', () => {
  it('names hosts, user, database, schema, the way to notifications and encryption', () => {
    const url =
      'postgres://ada:p%40ss@db-1,db-2:6432/shop?schema=jobs&listen=db-1:5433&sslmode=verify-full&idlePoll=10m'

    expect(postgresAddress(url)).toEqual({
      hosts: [
        { host: 'db-1', port: 5432 },
        { host: 'db-2', port: 6432 },
      ],
      user: 'ada',
      password: 'p@ss',
      database: 'shop',
      schema: 'jobs',
      listen: { host: 'db-1', port: 5433 },
      tls: 'verify-full',
      idlePollMs: 600_000,
    })
  })

  it('needs only a host and a database', () => {
    expect(postgresAddress('postgresql://[::1]/shop')).toEqual({
      hosts: [{ host: '::1', port: 5432 }],
      database: 'shop',
      tls: 'disable',
    })
  })

  it('is shown without its password', () => {
    expect(postgresAddressText(postgresAddress('postgres://ada:secret@[::1]:6000,b/shop?schema=jobs'))).toBe(
      'postgres://ada@[::1]:6000,b:5432/shop',
    )
  })

  it.each([
    ['postgres://ada:secret@host', 'expected'],
    ['postgres://ada:se@cret@host/shop', 'percent-encoded'],
    ['postgres://host:70000/shop', 'no port'],
    ['postgres://host/shop?secret=1', 'a parameter is not known'],
    ['postgres://host/shop?sslmode=prefer', "'sslmode' must be"],
    ['postgres://host/shop?schema=pg_jobs', "not with 'pg_'"],
    ['postgres://host/shop?schema=-jobs', 'beginning with none'],
    ['postgres://host/shop?schema=', '1 to 63 characters'],
    [`postgres://host/shop?schema=${'x'.repeat(64)}`, '1 to 63 characters'],
    ['postgres://host/shop?idlePoll=5s', "'idlePoll' must be from '1m' to '1d'"],
    ['postgres://host/shop?idlePoll=soon', "'idlePoll' must be"],
    ['postgres://a%zz@host/shop', "a '%' that begins no code"],
  ])('%s is refused, and no secret is shown', (url, words) => {
    expect(() => postgresAddress(url)).toThrowError(
      expect.objectContaining({ code: 'config-invalid', message: expect.stringContaining(words) }),
    )
    expect(() => postgresAddress(url)).not.toThrowError(/secret|se@cret/)
  })
})
