import { expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { addressText, isRedisUrl, redisAddress } from '#src/stores/redis/client/redis-address.js'

const at = (host: string, port: number) => ({ host, port })
const local = { kind: 'single', hosts: [at('localhost', 6379)], db: 0, tls: false }
const ann = { username: 'ann', password: 'pw', master: 'mymaster', sentinelPassword: 'x&y' }

it.each([
  ['redis://localhost', local],
  ['redis://localhost:7000/3', { ...local, hosts: [at('localhost', 7000)], db: 3 }],
  ['redis://localhost/?db=3', { ...local, db: 3 }],
  ['rediss://localhost', { ...local, tls: true }],
  ['redis://:secret@localhost', { ...local, password: 'secret' }],
  ['redis://ann:p%40ss%3Aw%2F@localhost', { ...local, username: 'ann', password: 'p@ss:w/' }],
  ['redis://[::1]:7000', { ...local, hosts: [at('::1', 7000)] }],
  ['redis+cluster://a:1,b,[::1]:3', { ...local, kind: 'cluster', hosts: [at('a', 1), at('b', 6379), at('::1', 3)] }],
  [
    'rediss+sentinel://ann:pw@a,b:1/mymaster?db=2&sentinelPassword=x%26y',
    { ...ann, kind: 'sentinel', hosts: [at('a', 26379), at('b', 1)], db: 2, tls: true },
  ],
])('%s is a Redis address', (url, address) => {
  expect(isRedisUrl(url)).toBe(true)
  expect(redisAddress(url)).toEqual(address)
})

it('an address in parts has the same defaults as one in a URL', () => {
  expect(redisAddress({ hosts: ['localhost'] })).toEqual(local)
  expect(redisAddress({ kind: 'sentinel', hosts: [{ host: 'a' }], master: 'm' })).toEqual(
    redisAddress('redis+sentinel://a/m'),
  )
})

it.each([
  ['redis://', /expected 'redis:/],
  ['redis://:secret', /a host must be/],
  ['redis://ann:secret', /a host must be/],
  ['redis://ann:x/secret', /is no number of a database/],
  ['redis://ann:x?secret', /a parameter is not known/],
  ['redis+cluster://ann:x/secret', /one database only/],
  ['redis+pool://localhost', /expected 'redis:/],
  ['redis://ann:se/cret@localhost', /percent-encoded/],
  ['redis://ann:se?cret@localhost', /percent-encoded/],
  ['redis://ann:se%cret@localhost', /%40/],
  ['redis://localhost:0', /0 is no port/],
  ['redis://localhost:70000', /70000 is no port/],
  ['redis://loc alhost', /a host must be/],
  ['redis://localhost/zero', /is no number of a database/],
  ['redis://localhost?tls=yes', /a parameter is not known; there are db, /],
  ['redis://a,b', /redis\+sentinel/],
  ['redis+cluster://a/1', /one database only/],
  ['redis+cluster://a?db=1', /database 0 only/],
  ['redis+sentinel://a:1', /name of the master is missing/],
  ['redis+sentinel://a,,b/m', /a host must be/],
])('%s is refused with the expected form', (url, message) => {
  const attempt = () => redisAddress(url)
  expect(attempt).toThrow(ConfigError)
  expect(attempt).toThrow(message)
  expect(attempt).not.toThrow(/se.?cret/)
})

it('an address is printed with everything but its passwords', () => {
  for (const url of [
    'redis://localhost:6379',
    'rediss://localhost:6379/3',
    'redis://[::1]:6379',
    'redis+cluster://a:1,b:2',
    'redis+sentinel://a:1,b:2/m?db=4',
  ])
    expect(addressText(redisAddress(url))).toBe(url)
  expect(addressText(redisAddress('redis://ann:secret@localhost:1'))).toBe('redis://ann@localhost:1')
  expect(addressText(redisAddress('redis+sentinel://:secret@a:1/m?sentinelPassword=secret'))).toBe(
    'redis+sentinel://a:1/m',
  )
})
