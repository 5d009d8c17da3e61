// A schedule whose input does not fit its task, among thirty schedules of one task: `millrace()` itself refuses it and names it. With
// an asynchronous schema the worker does.
import { defineTask, millrace } from 'millrace'
import { z } from 'zod' // npm install zod

const start = async (input) => {
  const mail = defineTask({ name: 'mail', input, run: async () => {} })
  const schedules = {
    digest: { cron: '0 9 * * 1', task: mail, input: { to: 'team@example.com' } },
    nightly: { cron: '0 3 * * *', task: mail, input: { to: 'team' } },
  }
  const mill = millrace({ store: 'memory:', tasks: [mail], schedules })
  await mill
    .worker()
    .start()
    .finally(() => mill.close())
}
for (const schema of [
  z.object({ to: z.email() }),
  z.object({ to: z.string().refine(async (to) => to.includes('@')) }),
]) {
  const error = await start(schema).catch((thrown) => thrown)
  const isNamed = error?.message.includes('nightly') && !error.message.includes('digest')
  console.log(isNamed ? 'ok' : 'WRONG', error?.message)
}
