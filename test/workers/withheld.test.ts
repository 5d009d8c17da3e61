import { describe, expect, it } from 'vitest'
import { secretsOf } from '#src/mill/store-source.js'
import { withoutSecrets } from '#src/workers/isolated/child-environment.js'

const store = 'redis://:s3cret%40word@db:6379'
const secrets = secretsOf(store)
const withheld = 'withheld:by-millrace-exec'

describe('the environment of a command', () => {
  it('lacks each variable with the password of the store, in any spelling, and has all others', () => {
    const env = {
      MILLRACE_STORE: store,
      REDIS_URL: 'rediss://user:another@elsewhere/0',
      REDIS_PASSWORD: 's3cret@word',
      DSN: `cache=${store}`,
      PATH: '/usr/bin',
      REDIS_HOST: 'redis://db:6379',
      EMAIL: 'ada@example.com',
      EMPTY: '',
    }
    expect(withoutSecrets(env, secrets, [])).toEqual({
      ...env,
      ...{ MILLRACE_STORE: withheld, REDIS_URL: withheld, REDIS_PASSWORD: withheld, DSN: withheld },
    })
  })

  it('has the named variables, and an address without a password', () => {
    const env = { MILLRACE_STORE: store, REDIS_PASSWORD: 's3cret@word' }
    expect(withoutSecrets(env, secrets, ['MILLRACE_STORE'])).toEqual({ ...env, REDIS_PASSWORD: withheld })
    const plain = { MILLRACE_STORE: 'sqlite:/data/jobs.db' }
    expect(withoutSecrets(plain, secretsOf('sqlite:/data/jobs.db'), [])).toEqual(plain)
  })

  it('keeps a variable that only contains the letters of a short password', () => {
    const env = { WORD: 'cabbage', PASSWORD: 'ab' }
    expect(withoutSecrets(env, secretsOf({ hosts: ['db'], password: 'ab' }), [])).toEqual({
      ...env,
      PASSWORD: withheld,
    })
  })
})
