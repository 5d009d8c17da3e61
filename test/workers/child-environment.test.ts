import { expect, it } from 'vitest'
import { childEnvironment, childFlags, withheldNames } from '#src/workers/isolated/child-environment.js'

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
