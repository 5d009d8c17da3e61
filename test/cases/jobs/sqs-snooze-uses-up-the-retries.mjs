// A job looks every second whether a film is ready, and returns snooze('1s') until then. Then it fails once.
// Right: a snooze is no failure: the first failure is followed by a retry, as on every other store.
import { startFauxqs } from 'fauxqs'
import { defineTask, millrace, snooze } from 'millrace'

const sqs = await startFauxqs({ port: 0, logger: false })
sqs.createQueue('s-films')
sqs.createQueue('dlq-s-films')
let runs = 0
const film = defineTask({
  name: 'film',
  queue: 'films',
  retry: { max: 4, backoff: () => 1_000 },
  async run() {
    runs += 1
    if (runs <= 6) return snooze('1s')
    if (runs === 7) throw new Error('its first failure')
  },
})
const mill = millrace({ store: `sqs://us-east-1?endpoint=http://127.0.0.1:${sqs.port}`, namespace: 's', tasks: [film] })
const ended = new Promise((end) =>
  ['job.completed', 'job.buried'].map((name) => mill.on(name, ({ reason }) => end(`${name} ${reason ?? ''}`))),
)
await mill.worker().start()
await mill.enqueue(film, {})
const end = await ended
console.log(end.startsWith('job.completed') ? 'ok' : 'WRONG', end, { runs })
process.exit()
