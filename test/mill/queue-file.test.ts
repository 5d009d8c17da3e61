/** Queue files: Kale's are read as they are, and every mistake is told with its place. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queuesIn } from '#src/mill/options/queue-file.js'

const read = (text: string) => queuesIn(text, 'queues.yaml')
const issuesOf = (text: string) => {
  const found = read(text)
  return 'issues' in found ? found.issues.map(({ path, message }) => `${path} ${message}`) : []
}

/** The form of Kale's documentation, with its queue \`default\` where it belongs. */
const kale = `# task SLA: 60/10 = 6 seconds
high_priority:
    name: high_priority
    priority: 100
    batch_size: 10
    visibility_timeout_sec: 60
    long_poll_time_sec: 1
    num_iterations: 10

default:
    name: default
    priority: 40
    batch_size: 10
    visibility_timeout_sec: 60
    long_poll_time_sec: 0
    num_iterations: 5
`

/** The same with the slip that the documentation has. */
const slipped = kale.replace('\ndefault:\n', '\n    default:\n')

function file(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'queues.yaml'), text)
  return join(folder, 'queues.yaml')
}

describe('a queue file', () => {
  it("accepts Kale's keys unchanged", () => {
    expect(read(kale)).toEqual({
      queues: {
        high_priority: { weight: 100, claimSize: 10, lease: 60_000, longPoll: 1_000, iterations: 10 },
        default: { weight: 40, claimSize: 10, lease: 60_000, longPoll: 20_000, iterations: 5 },
      },
    })
  })

  it('accepts our options with them, and names queues by their keys', () => {
    const text = `
mail:
  priority: 7
  maxCrashes: 5
  retention: { dead: { age: 7d } }
film: { weight: 3, lease: 5m, fifo: true }
`
    expect(read(text)).toEqual({
      queues: {
        mail: { weight: 7, maxCrashes: 5, retention: { dead: { age: '7d' } } },
        film: { weight: 3, lease: '5m', fifo: true },
      },
    })
  })

  it('can be named instead of queues, and is used', () => {
    const mill = millrace({ store: 'memory:', queues: file(kale) })
    expect([...mill.queues.keys()]).toEqual(['high_priority', 'default'])
    expect(mill.queues.get('default')).toMatchObject({ weight: 40, leaseMs: 60_000, longPollMs: 20_000 })
  })

  it('is refused by name if it cannot be read or has mistakes', () => {
    expect(() => millrace({ store: 'memory:', queues: '/nowhere/queues.yaml' })).toThrow(
      /queues: names the file '\/nowhere\/queues\.yaml', which cannot be read/,
    )
    expect(() => millrace({ store: 'memory:', queues: file('q: { priority: 0 }') })).toThrow(
      /queues\.yaml:1:6: 'priority' must be a whole number from 1 to 100; got 0/,
    )
  })

  it('is refused if a time limit does not fit a lease, and both are named', () => {
    const task = defineTask({ name: 'slow', timeLimit: '2m', run: async () => {} })
    const text = `${kale}    renewLease: false\n`
    expect(() => millrace({ store: 'memory:', queues: file(text), tasks: [task] })).toThrow(
      /tasks\.slow\.timeLimit: must be less than the lease of queue 'default' \(1m\)/,
    )
  })

  it('is refused if it is larger than a megabyte', () => {
    const path = file(`q: { priority: 1 }\n${'#'.repeat(1_048_576)}\n`)
    expect(() => millrace({ store: 'memory:', queues: path })).toThrow(/1048576 bytes/)
    expect(readFileSync(path)).not.toHaveLength(0)
  })
})

describe('a queue that was indented into another', () => {
  it('is reported with its line and a remedy', () => {
    const issues = issuesOf(slipped)
    expect(issues).toContain(
      "queues.yaml:10:5 'default' is no option of a queue. If it is a queue, begin it in the column of 'high_priority'",
    )
    expect(issues).toContain('queues.yaml:12:5 Map keys must be unique')
    expect(issues).toHaveLength(7)
  })
})

describe('a mistake in a queue file', () => {
  it.each([
    ['', 'queues.yaml:1:1 is empty; expected a queue at least'],
    ['# nothing', 'queues.yaml:1:1 is empty; expected a queue at least'],
    ['[a, b]', 'queues.yaml:1:1 must be a map of queues, each with its options'],
    ['just text', 'queues.yaml:1:1 must be a map of queues, each with its options'],
    ['mail:', "queues.yaml:1:1 'mail' has no options; expected a map of them, indented behind it"],
    ['mail: 5', "queues.yaml:1:1 'mail' has no options; expected a map of them, indented behind it"],
    ['mail: { name: 5 }', "queues.yaml:1:9 'name' must be a text; got 5"],
    ['mail: { name: a b }', 'queues.yaml:1:1 names the queue "a b"; expected 1 to 80 characters'],
    ['a b: { priority: 1 }', 'queues.yaml:1:1 names the queue "a b"; expected 1 to 80 characters'],
    ['mail: { priority: 101 }', "queues.yaml:1:9 'priority' must be a whole number from 1 to 100; got 101"],
    ['mail: { priority: 1.5 }', "queues.yaml:1:9 'priority' must be a whole number from 1 to 100; got 1.5"],
    ['mail: { priority: high }', `queues.yaml:1:9 'priority' must be a whole number from 1 to 100; got "high"`],
    ['mail: { batch_size: 0 }', "queues.yaml:1:9 'batch_size' must be a whole number from 1 to 500; got 0"],
    ['mail: { num_iterations: 0 }', "queues.yaml:1:9 'num_iterations' must be a whole number from 1 to"],
    [
      'mail: { visibility_timeout_sec: 2 }',
      "'visibility_timeout_sec' must be a whole number of seconds from 3 to 43200",
    ],
    ['mail: { visibility_timeout_sec: 1m }', "'visibility_timeout_sec' must be a whole number of seconds"],
    ['mail: { long_poll_time_sec: 21 }', "'long_poll_time_sec' must be a whole number of seconds from 0 to 20"],
    ['mail: { long_poll_time_sec: -1 }', "'long_poll_time_sec' must be a whole number of seconds from 0 to 20"],
    ['mail: { weight: 0 }', "queues.yaml:1:9 'weight' must be a whole number from 1 to 100; got 0"],
    ['mail: { lease: soon }', "queues.yaml:1:9 'lease' must be"],
    ['mail: { retention: { dead: { ages: 1 } } }', "queues.yaml:1:9 'retention' is not an option"],
    ['mail: { prioritiy: 5 }', "queues.yaml:1:9 'prioritiy' is not an option; check its spelling"],
    ['mail: { priority: 5, weight: 5 }', "queues.yaml:1:22 'weight' repeats 'priority'"],
    ['mail: { priority: 5, priority: 6 }', 'queues.yaml:1:22 Map keys must be unique'],
    ['mail: { priority: 5 }\nmail: { priority: 6 }', 'queues.yaml:2:1 Map keys must be unique'],
    ['a: { name: mail }\nb: { name: mail }', "queues.yaml:2:1 is a second queue 'mail'; each has a name of its own"],
    ['a: &x { priority: 5 }\nb: *x', 'queues.yaml:2:4 is an alias; write out what it stands for'],
    ['mail: { priority: !!js/function 5 }', 'queues.yaml:1:19'],
    ['mail: { priority: !mine 5 }', 'queues.yaml:1:19'],
    ['mail: { priority: 5 }\n---\nfilm: { priority: 5 }', 'begins a second document; a queue file has one'],
    ['mail: { priority: 5', 'queues.yaml:1:'],
    ['mail:\n\tpriority: 5', 'queues.yaml:2:'],
    ['mail:\n  priority: 5\n weight: 3', 'queues.yaml:3:'],
    ['__proto__: { priority: 5 }', 'queues.yaml:1:1 names the queue "__proto__"'],
    ['mail: { throttle: { limit: 0, window: 1s } }', "queues.yaml:1:9 'throttle' must be"],
  ])('is reported with its place and the expected form: %s', (text, told) => {
    expect(issuesOf(text)).toContainEqual(expect.stringContaining(told))
  })

  it('does not hide another', () => {
    expect(issuesOf('a: { priority: 0, batch_size: 0 }\nb: { num_iterations: x }')).toHaveLength(3)
  })

  it('with many aliases costs nothing: none is followed', () => {
    const levels = Array.from({ length: 20 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i}, `.repeat(9)}*l${i}]`)
    const issues = issuesOf(['l0: &l0 [x]', ...levels].join('\n'))
    expect(issues.filter((issue) => issue.includes('alias'))).toHaveLength(200)
  })
})
