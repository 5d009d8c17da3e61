// An ordered task keeps equal payloads apart, so that of a change and its reverse the last counts, and three equal
// movements of a stock are three. A payload with a score is known again while it waits, so a repeated enqueue adds nothing.
import { defineOrderedTask, millrace } from 'millrace'

let status,
  stock = 10
const setStatus = defineOrderedTask({
  name: 'set-status',
  id: (c) => c.user,
  run: async (byId) => {
    for (const [, all] of byId) for (const c of all) status = c.status
  },
})
const move = defineOrderedTask({
  name: 'move',
  id: (m) => m.sku,
  run: async (byId) => {
    for (const [, all] of byId) for (const m of all) stock += m.delta
  },
})
const mill = millrace({
  store: process.env.STORE ?? 'memory:',
  namespace: `equal${Date.now()}`,
  tasks: [setStatus, move],
})
for (const s of ['active', 'paused', 'active']) await mill.enqueue(setStatus, { user: 'ada', status: s })
for (let i = 0; i < 3; i++) await mill.enqueue(move, { sku: 'cup', delta: -1 })
for (let i = 0; i < 2; i++) await mill.enqueue(move, { sku: 'cup', delta: -2 }, { score: 17 })
await mill.worker().start()
await mill.job(setStatus, 'ada').result({ timeout: '5s' })
await mill.job(move, 'cup').result({ timeout: '5s' })
console.log(status === 'active' && stock === 5 ? 'ok' : 'WRONG', { status, stock })
await mill.close()
