// Four changes of one account wait; the handler applies them in their order, and the third is poison.
// 1, 2 and 4 are applied once each, and 3 is in the morgue: the handler says how far it came.
import { defineOrderedTask, millrace } from 'millrace'

const applied = []
const change = defineOrderedTask({
  name: 'change',
  id: ({ account }) => account,
  score: ({ n }) => n,
  retry: { max: 1, backoff: () => 20 },
  async run(changesById, ctx) {
    for (const [account, changes] of changesById)
      for (const [i, { n }] of changes.entries()) {
        if (n === 3) throw new Error('poison')
        applied.push(n)
        ctx.done(account, i + 1)
      }
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `part${Date.now()}`, tasks: [change] })
const [job] = await mill.enqueueMany(
  change,
  [1, 2, 3, 4].map((n) => ({ account: 'a', n })),
)
await mill.worker().start()
await job.result({ timeout: '10s' }).catch(() => {})
const dead = (await mill.queue('change').morgue.get('a'))?.payloads.map(({ input }) => input.n) ?? []
console.log(`${applied}` === '1,2,4' && `${dead}` === '3' ? 'ok' : 'WRONG', { applied: `${applied}`, dead: `${dead}` })
await mill.close()
