/** A worker that says when its first handler begins, and what memory it takes when it has been idle. For the benchmark of starts. */

const [checkout, store] = process.argv.slice(2)
const { defineTask, millrace } = await import(`${checkout}/dist/index.js`)
const first = defineTask({ name: 'first', run: async () => process.send('begun') })
const mill = millrace({ store, tasks: [first] })
await mill.worker().start()
setTimeout(() => process.send({ rss: process.memoryUsage.rss() }), 3_000)
