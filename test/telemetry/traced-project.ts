/** A traced project: a web server that enqueues, and tasks of which one enqueues the other, which runs in a process of its own. */

import { join } from 'node:path'
import { CommandProcess } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'
import type { TraceCollector } from './trace-collector.js'

const configFile = `
import { existsSync, writeFileSync } from 'node:fs'
import { trace } from '${root}/node_modules/@opentelemetry/api/build/src/index.js'
import { defineTask, millrace } from 'millrace'
import { tracing } from 'millrace/telemetry'

const step = (name) => trace.getTracer('mine').startSpan(name).end()
/** The first attempt says its process and hangs, where that is asked for. */
const hangs = async (how) => {
  if (how === undefined || existsSync(how)) return
  writeFileSync(how, String(process.pid))
  await new Promise((resolve) => setTimeout(resolve, 600_000))
}

export const ship = defineTask({
  name: 'ship',
  queue: 'shipping',
  isolate: 'process',
  retry: { max: 2, backoff: () => 0 },
  async run({ hang }) {
    step('print label')
    await hangs(hang)
  },
})
export const order = defineTask({
  name: 'order',
  queue: 'orders',
  async run({ hang, hangShip }, ctx) {
    await hangs(hang)
    step('charge card')
    await ctx.enqueue(ship, { hang: hangShip })
  },
})
export default millrace({
  store: 'sqlite:jobs.db',
  tasks: [order, ship],
  middleware: [tracing({ attributes: () => ({ 'process.pid': process.pid }) })],
})`

const serverFile = `
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { SpanKind, context, propagation, trace } from '${root}/node_modules/@opentelemetry/api/build/src/index.js'
import mill, { order } from './millrace.config.js'

const server = createServer(async (request, response) => {
  const parent = propagation.extract(context.active(), request.headers)
  const options = { kind: SpanKind.SERVER, attributes: { 'process.pid': process.pid } }
  await trace.getTracer('web').startActiveSpan('POST /orders', options, parent, async (span) => {
    const { id } = await mill.enqueue(order, await json(request))
    response.end(JSON.stringify({ id }))
    span.end()
  })
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ event: 'listening', port: server.address().port })))`

export class TracedProject {
  readonly folder: string
  readonly #env: Readonly<Record<string, string>>

  constructor(collector: TraceCollector) {
    this.folder = project({
      'package.json': '{"type":"module"}',
      'millrace.config.js': configFile,
      'server.js': serverFile,
    })
    this.#env = {
      NODE_OPTIONS: `--import ${join(root, 'test/telemetry/otlp-setup.mjs')}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '200',
    }
  }

  file(name: string): string {
    return join(this.folder, name)
  }

  worker(): CommandProcess {
    return new CommandProcess('work --json', { cwd: this.folder, env: this.#env })
  }

  /** A web server in a process of its own, and what sends it an order; answers the id of the job. */
  async web() {
    const server = new CommandProcess([], { cwd: this.folder, env: this.#env, script: this.file('server.js') })
    const [{ port }] = (await server.events('listening')) as [{ port: number }]
    return {
      pid: server.pid,
      order: async (order: object, headers: Readonly<Record<string, string>> = {}) => {
        const url = `http://127.0.0.1:${port}/orders`
        const response = await fetch(url, { method: 'POST', body: JSON.stringify(order), headers })
        return ((await response.json()) as { id: string }).id
      },
    }
  }
}
