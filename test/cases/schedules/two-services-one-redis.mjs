// Two services share one store, as two services share one Redis. Their projects have names of their own, here given by `schedulesOf`
// since both run in one program. The worker of the second leaves the schedules of the first alone, and warns that they are there.
import { defineTask, millrace } from 'millrace'

const told = []
const logger = { debug() {}, info() {}, warn: (text) => told.push(text), error: (text) => told.push(text) }
const store = process.env.STORE === 'memory:' ? 'sqlite:.millrace/shared.db' : process.env.STORE
const namespace = `two${Date.now()}`
async function service(name) {
  const task = defineTask({ name: `${name}-report`, queue: name, run: async () => {} })
  const schedules = { [`${name}-nightly`]: { cron: '0 3 * * *', task } }
  const mill = millrace({ store, namespace, tasks: [task], schedules, schedulesOf: name, logger })
  await mill.worker().start()
  return mill
}
const billing = await service('billing')
const crm = await service('crm')
const { schedules } = await crm.schedules.list()
const names = schedules.map(({ name }) => name)
console.log(names.length >= 2 && told.some((text) => text.includes('namespace')) ? 'ok' : 'WRONG', names, told)
await crm.close()
await billing.close()
