import { describe, expect, it } from 'vitest'
import { secretsOf } from '#src/mill/store-source.js'
import {
  affinityOf,
  childEnvironment,
  childFlags,
  withheldNames,
  withoutSecrets,
} from '#src/workers/isolated/child-environment.js'

it('an isolated process gets what it needs to find its task and its store, the variables that its task names, and no other secret', () => {
  const env = {
    ...{ PATH: '/bin', HOME: '/root', LANG: 'de_DE', LC_ALL: 'C', TZ: 'UTC', NODE_ENV: 'production', NODE_OPTIONS: '' },
    ...{
      MILLRACE_STORE: 'redis://localhost',
      OTEL_SERVICE_NAME: 'w',
      API_KEY: 'k',
      AWS_SECRET_ACCESS_KEY: 's',
      GONE: undefined,
      PATHS: 'x',
      CUDA_VISIBLE_DEVICES: '1',
    },
  }
  expect(childEnvironment(env, ['API_KEY', 'GONE', 'ABSENT'])).toEqual({
    ...{ PATH: '/bin', HOME: '/root', LANG: 'de_DE', LC_ALL: 'C', TZ: 'UTC', NODE_ENV: 'production', NODE_OPTIONS: '' },
    ...{ MILLRACE_STORE: 'redis://localhost', OTEL_SERVICE_NAME: 'w', API_KEY: 'k', CUDA_VISIBLE_DEVICES: '1' },
  })
})

it('an isolated process starts with the flags that load modules, and without those that debug, measure or evaluate', () => {
  const flags = [
    '--import',
    'tsx',
    '--inspect=9229',
    '--cpu-prof',
    '-e',
    'code',
    '--max-old-space-size=99',
    '--enable-source-maps',
  ]
  expect(childFlags(flags, undefined)).toEqual(['--import', 'tsx', '--enable-source-maps'])
  expect(childFlags([], 536_870_912)).toEqual(['--max-old-space-size=512'])
})

it('withheld variables are named if a task may need them: not those of a shell or a session', () => {
  const env = {
    PATH: '/bin',
    MILLRACE_STORE: 'x',
    SHLVL: '1',
    SSH_AUTH_SOCK: '/s',
    npm_config_cache: '/c',
    GONE: undefined,
  }
  expect(withheldNames({ ...env, PGHOST: 'h', DATABASE_URL: 'secret' })).toEqual(['DATABASE_URL', 'PGHOST'])
  expect(withheldNames(env)).toEqual([])
})

it('a worker without a declared affinity takes that of the devices in its environment, in any order', () => {
  expect(affinityOf({ PATH: '/bin', HIP_VISIBLE_DEVICES: '1', CUDA_VISIBLE_DEVICES: '0,2' })).toBe(
    'CUDA_VISIBLE_DEVICES=0,2 HIP_VISIBLE_DEVICES=1',
  )
  expect(affinityOf({ CUDA_VISIBLE_DEVICES: '0' })).not.toBe(affinityOf({ CUDA_VISIBLE_DEVICES: '1' }))
  expect(affinityOf({ PATH: '/bin', INVOCATION_ID: 'f3', CUDA_VISIBLE_DEVICES: undefined })).toBe('')
})

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
