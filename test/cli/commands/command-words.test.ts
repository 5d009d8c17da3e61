import { expect, it } from 'vitest'
import { commandsMeant } from '#src/cli/command-words.js'

const paths = [
  'work',
  'stats',
  'dash',
  'jobs',
  'jobs list',
  'jobs run-now',
  'morgue',
  'morgue list',
  'morgue revive',
  'workers',
]

it.each([
  ['list', '', ['jobs list', 'morgue list']],
  ['ls', 'morgue', ['morgue list']],
  ['retry', '', ['morgue revive']],
  ['retry', 'jobs', ['morgue revive']],
  ['revive', 'jobs', ['morgue revive']],
  ['run', '', ['work', 'jobs run-now']],
  ['run', 'jobs', ['jobs run-now']],
  ['top', '', ['stats']],
  ['web', '', ['dash']],
  ['ps', '', ['workers']],
  ['job', '', ['jobs']],
  ['lits', 'jobs', ['jobs list']],
  ['lits', '', []],
  ['constructor', '', []],
])("'%s' after '%s' suggests %j", (word, group, meant) => {
  expect(commandsMeant(word, group, paths)).toEqual(meant)
})
