/** The clashes of limits: bounds of groups over several shards, and scopes whose queues disagree. */
import { defineOrderedTask, type MillOptions, millrace, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'

function mistakes(queues: Record<string, QueueOptions>, tasks: MillOptions['tasks'] = []): string[] {
  try {
    millrace({ store: 'memory:', queues, tasks })
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).issues.map((issue) => `${issue.path}: ${issue.message}`)
  }
  return []
}

const perGroup = { maxRunning: { perGroup: 2 } }

describe('maxRunning of each group', () => {
  const remedy = 'set `shards: 1`, or give a number for all groups together'

  it('is refused for several shards, which ordered queues have by default', () => {
    const ordered = (shards: number) =>
      `queues.q.maxRunning: cannot be \`{ perGroup }\` over its ${shards} shards (5 if an ordered queue has no \`shards\`): ${remedy}`

    expect(mistakes({ q: { ...perGroup, ordered: true } })).toEqual([ordered(5)])
    expect(mistakes({ q: perGroup }, [defineOrderedTask({ name: 'q' })])).toEqual([ordered(5)])
    expect(mistakes({ q: { ...perGroup, ordered: true, shards: 2 } })).toEqual([ordered(2)])
    expect(mistakes({ q: { ...perGroup, shards: 3 } })).toEqual([
      `queues.q.maxRunning: cannot be \`{ perGroup }\` over its 3 shards: ${remedy}`,
    ])
  })

  it('is accepted for one shard, and a number for all groups for several', () => {
    expect(mistakes({ q: perGroup, o: { ...perGroup, ordered: true, shards: 1 } })).toEqual([])
    expect(mistakes({ o: { maxRunning: 7, ordered: true } })).toEqual([])
  })
})

describe('queues of one scope', () => {
  const ten = { limit: 10, window: '1m' } as const

  it('that disagree about its rules are each reported together with the first', () => {
    const queues = {
      a: { throttle: { ...ten, scope: 'sites' } },
      b: { throttle: { ...ten, scope: 'sites', moderate: true } },
      sites: { throttle: { ...ten, by: 'group' as const } },
      c: { throttle: { limit: 10, window: 60_000, scope: 'sites' } },
    }

    expect(mistakes(queues)).toEqual([
      "queues.b.throttle: must be the same as that of queue 'a', as the two share the scope 'sites': 10 in 1m, scope 'sites'; got 10 in 1m, moderate, scope 'sites'",
      "queues.sites.throttle: must be the same as that of queue 'a', as the two share the scope 'sites': 10 in 1m, scope 'sites'; got 10 in 1m, by group",
    ])
  })

  it('that agree are accepted, and so are other rules in another scope', () => {
    expect(mistakes({ a: { throttle: { ...ten, scope: 's' } }, s: { throttle: ten }, b: { throttle: ten } })).toEqual(
      [],
    )
    expect(mistakes({ a: { throttle: ten }, b: { throttle: { limit: 1, window: '1s' } } })).toEqual([])
  })
})

it('clashes of limits are reported at once, together with other clashes', () => {
  const queues: Record<string, QueueOptions> = {
    a: { ...perGroup, shards: 2, exclusive: 'shard' },
    b: { throttle: { limit: 1, window: '1s', scope: 'c' } },
    c: { throttle: { limit: 2, window: '1s' } },
  }

  expect(mistakes(queues).map((text) => text.split(':')[0])).toEqual([
    'queues.a.exclusive',
    'queues.a.maxRunning',
    'queues.c.throttle',
  ])
})
