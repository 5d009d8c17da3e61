// A body has a field or a part of a meta that is called `constructor` (the car's, say).
// Right: it is stored, as by the same call in a program.
import { defineTask, millrace } from 'millrace'
import { webHandler } from 'millrace/web'

const race = defineTask({ name: 'race', run() {} })
const mill = millrace({ store: 'memory:', tasks: [race] })
const window = webHandler(mill, { authorize: () => true })
const post = (path, body) =>
  window.fetch(
    new Request(`http://localhost/api/v1/queues/default/${path}`, {
      method: 'POST',
      headers: { host: 'localhost', 'x-millrace': '1', 'content-type': 'application/json' },
      body,
    }),
  )
const enqueued = await post(
  'jobs',
  '{"task":"race","input":1,"id":"one","meta":{"constructor":"Ferrari","driver":"Ada"}}',
)
const set = await post('jobs/one/fields', '{"constructor":"Ferrari"}')
const { meta, fields } = await mill.job('one').record()
console.log(
  enqueued.status >= 400 || Object.hasOwn(meta, 'constructor') ? 'ok   ' : 'WRONG',
  enqueued.status,
  'meta',
  meta,
)
console.log(
  set.status >= 400 || Object.hasOwn(fields ?? {}, 'constructor') ? 'ok   ' : 'WRONG',
  set.status,
  await set.text(),
  'fields',
  fields,
)
process.exit()
