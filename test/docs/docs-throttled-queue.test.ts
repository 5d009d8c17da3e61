/** The page of those who come from RedisThrottledQueue, against the names of its documentation. */

import { describe, expect, it } from 'vitest'
import { Document, plain } from './document.js'
import { membersOf } from './interface-members.js'

const page = new Document('docs/coming-from/redis-throttled-queue.md')

/** Every parameter, method, class, flag and line of its documentation, and what its code has beyond. */
const names = `
redisConn myQueue throttleWindow throttleLimit moderate moderation windowName modName elastic elastic_buffer
push pop clear __len__ len None RedisPriorityQueue RedisQueue RedisStack
example_rtq.py -r --redis-host -p --redis-port -m --moderate -w --window -n --num-hits -q --queue -e --elastic testqueue
encoding pickle allowed throttle_window throttle_time WATCH MULTI EXEC
QUEUE_HITS QUEUE_WINDOW QUEUE_MODERATED
`

describe('the page for users of RedisThrottledQueue', () => {
  const rows = page.tables.flatMap((table) => table.rows)
  const left = [...rows.map(([was]) => was!), ...page.blocks.map(({ text }) => text)].join('\n')
  const titled = `${left}\n${page.prose}`

  it('says what replaces every name in its documentation', () => {
    const isNamed = (name: string) => {
      const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      return new RegExp(`(?<![\\w-])${escaped}(?![a-z_])`).test(
        name === 'example_rtq.py' ? titled : left.replaceAll(':throttle', ' throttle'),
      )
    }
    const all = names.split(/\s+/).filter((name) => name !== '')

    expect(all.filter((name) => !isNamed(name))).toEqual([])
  })

  it('has in each row a counterpart, or the reason for its absence', () => {
    expect(rows.length).toBeGreaterThan(45)
    expect(rows.filter((row) => row.length < 2 || row.some((cell) => cell === ''))).toEqual([])
  })

  it('names every existing option and reason', () => {
    const options = membersOf('workers/throttled-queue.ts', 'ThrottledQueueOptions').map(({ name }) => name)
    const right = page.rows('The constructor').map(([, now]) => plain(now!))

    expect(options.filter((option) => !right.some((cell) => new RegExp(`\\b${option}\\b`).test(cell)))).toEqual([])
    for (const reason of ['empty', 'throttled', 'scheduled', 'full', 'paused'])
      expect(page.codeSpans).toContain(`'${reason}'`)
  })
})
