// An operator wants to end the jobs of one customer, and writes what seems natural.
// Right: it works, or it is refused by name, as an unknown option of enqueue, of a queue or of a worker is.
import { defineTask, millrace } from 'millrace'

const send = defineTask({ name: 'send', queue: 'mail', group: ({ customer }) => customer })
const store = process.env.STORE ?? 'memory:'
const mill = millrace({ store, namespace: `mail${Date.now()}`, queues: { mail: {} }, tasks: [send] })
const jobs = await mill.enqueueMany(
  send,
  ['a', 'a', 'b', 'b'].map((customer) => ({ customer })),
)
const told = await mill
  .queue('mail')
  .jobs.cancel('all', { group: 'a' })
  .catch(({ code, message }) => `${code}: ${message.slice(0, 90)}`)
const { ready } = await mill.queue('mail').depth()
const isRefused = typeof told === 'string' && told.startsWith('argument-invalid')
console.log(isRefused || ready === 2 ? 'ok' : 'WRONG', { told, left: ready })
const late = new Promise((resolve) => setTimeout(resolve, 1_500, 'still waiting'))
const answer = await Promise.race([jobs[3].result({ timout: '200ms' }).catch(({ code }) => code), late])
console.log(answer === 'argument-invalid' ? 'ok' : 'WRONG', answer)
process.exit()
