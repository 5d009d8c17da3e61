import { describe, expect, it } from 'vitest'
import { childArgs } from '#src/cli/process-group.js'

describe('the command line of a child process', () => {
  it.each([
    ['work --processes 4', 'work'],
    ['work tasks.ts --processes=4 --json', 'work tasks.ts --json'],
    ['work --queues a,b --processes 2 --concurrency 3', 'work --queues a,b --concurrency 3'],
  ])('%s becomes %s', (given, expected) => {
    expect(childArgs(given.split(' '))).toEqual(expected.split(' '))
  })
})
