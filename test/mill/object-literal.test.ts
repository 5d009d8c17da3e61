import { describe, expect, it } from 'vitest'
import { type LiteralRoot, placeInSource } from '#src/mill/configuration/object-literal.js'

/** What stands at the place that is found, as far as the end of its line. */
function found(source: string, root: LiteralRoot, path: string): string | undefined {
  const place = placeInSource(source, root, path.split('.'))
  return place && source.split('\n')[place.line - 1]!.slice(place.column - 1)
}

const config = `#!/usr/bin/env node
import { defineTask, millrace } from 'millrace' // millrace({ store: 1 })
/* millrace({ store: 2 }) */
const text = \`millrace({ store: \${"}" + \`\${1}\`} })\`
const pattern = /millrace\\({[/"]/g
export const mail = defineTask<'mail', Schema>({
  name: 'mail',
  async run({ to = '}' }) { return { retry: 1 } },
  retry: {
    max: -1,
  },
})
export const other = defineTask({ name: 'other', timeLimit: 3 / 4, "slowAfter": '1h' })
const queues: Record<string, object> = {
  'a.b': { wieght: 5 },
  mails: { lease: '1', throttle: [{ limit: 1 }, { limit: 2, window: 'x' }] },
}
export default millrace({
  ...shared,
  store: url ? 'sqlite:a' : 'memory:',
  queues,
  tasks: [mail, other],
  worker: worker(),
  get logger() { return 1 },
} satisfies MillOptions)
`

describe('the position of an option in a source text', () => {
  it.each<[LiteralRoot, string, string]>([
    ['millrace', 'store', "store: url ? 'sqlite:a' : 'memory:',"],
    ['millrace', 'queues.a.b.wieght', 'wieght: 5 },'],
    ['millrace', 'queues.mails.throttle.1.window', "window: 'x' }] },"],
    ['millrace', 'tasks.1', 'other],'],
    ['millrace', 'logger', 'logger() { return 1 },'],
    [{ task: 'mail' }, 'retry.max', 'max: -1,'],
    [{ task: 'mail' }, 'run', "run({ to = '}' }) { return { retry: 1 } },"],
    [{ task: 'other' }, 'slowAfter', '"slowAfter": \'1h\' })'],
  ])('for %j is found: %s', (root, path, text) => {
    expect(found(config, root, path)).toBe(text)
  })

  it('is that of the deepest literal entry, or else that of the object', () => {
    expect(found(config, 'millrace', 'worker.concurrency')).toBe('worker: worker(),')
    expect(found(config, 'millrace', 'queues.mails.nothing')).toMatch(/^mails: \{ lease/)
    expect(found(config, 'millrace', 'replicas')).toBe('{')
    expect(placeInSource(config, 'millrace', ['queues', 'mails', 'x'])).toMatchObject({ line: 16, column: 3, depth: 2 })
  })

  it('is never that of an entry that a spread may have replaced or moved', () => {
    expect(found('millrace({ store: 1, ...shared, tasks: 2 })', 'millrace', 'store')).toMatch(/^\{ store/)
    expect(found('millrace({ store: 1, ...shared, tasks: 2 })', 'millrace', 'tasks')).toBe('tasks: 2 })')
    expect(found('millrace({ tasks: [a, ...more, b] })', 'millrace', 'tasks.1')).toMatch(/^tasks: /)
    expect(found('millrace({ tasks: [a, ...more, b] })', 'millrace', 'tasks.0')).toBe('a, ...more, b] })')
  })

  it('is neither of two candidates if a name with a dot makes it ambiguous', () => {
    const names = 'export default { queues: { a: { b: 1 }, "a.b": { c: 2 } } }'
    expect(found(names, 'default', 'queues.a.b.c')).toBe('c: 2 } } }')
    expect(found(names, 'default', 'queues.a.b')).toMatch(/^queues: /)
  })

  it('is found in a default export, and in an exported constant', () => {
    expect(found('export default { store: 1 }', 'default', 'store')).toBe('store: 1 }')
    expect(found('const all = { store: 1 } as const\nexport default all', 'default', 'store')).toBe(
      'store: 1 } as const',
    )
  })

  it('is undefined if it is ambiguous, or if there is no literal', () => {
    expect(found('millrace({ store: 1 })\nmillrace({ store: 2 })', 'millrace', 'store')).toBeUndefined()
    expect(found('millrace(options)', 'millrace', 'store')).toBeUndefined()
    expect(found('const o = { store: 1 }; { const o = {} }\nmillrace(o)', 'millrace', 'store')).toBeUndefined()
    expect(found("defineTask({ name: 'a' }); defineTask({ name: 'a' })", { task: 'a' }, 'queue')).toBeUndefined()
    expect(found('defineTask({ name: nameOf() })', { task: 'a' }, 'queue')).toBeUndefined()
    expect(found('', 'default', 'store')).toBeUndefined()
  })
})
