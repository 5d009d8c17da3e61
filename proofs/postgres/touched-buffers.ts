/**
 * The buffers that calls of a Postgres store touch, as the server counts them: `auto_explain` tells the plan of each statement, those
 * inside functions too, in notices to the connection that sent it.
 */

import pg from 'pg'

/** What the server needs for it. */
export const explaining: Readonly<Record<string, string>> = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_format': 'json',
  'auto_explain.log_level': 'notice',
  'auto_explain.log_nested_statements': 'on',
}

interface Explained {
  readonly 'Query Text': string
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}

export interface Touched {
  /** Of all statements of the call together. */
  readonly buffers: number
  /** The statement inside a function that touched most, and how many. */
  readonly worst: string
  readonly worstBuffers: number
}

/** Upkeep that runs behind a claim, and of which nobody waits for the answer. */
const behind = /\.(?:keep_up|raise_floors|ring|tell)\w*\(/

/** Listens to all clients of this process that connect from now on. */
export class TouchedBuffers {
  #explained: Explained[] = []

  constructor() {
    const hear = ({ message = '' }: { readonly message?: string | undefined }) => {
      const at = message.indexOf('{')
      if (message.includes('plan:') && at > 0) this.#explained.push(JSON.parse(message.slice(at)) as Explained)
    }
    const prototype = pg.Client.prototype as unknown as { connect(this: pg.Client): Promise<void> }
    const { connect } = prototype
    prototype.connect = function () {
      this.on('notice', hear)
      return connect.call(this)
    }
  }

  /** What the calls touch that `work` makes. */
  async of(work: () => Promise<unknown>): Promise<Touched> {
    this.#explained = []
    await work()
    const all = this.#explained.map(({ 'Query Text': text, Plan: plan }) => ({
      text: text.replaceAll(/\s+/g, ' '),
      buffers: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
    }))
    const isCall = ({ text }: { readonly text: string }) => /^SELECT CASE WHEN set_config\(/.test(text)
    const calls = all.filter((one) => isCall(one) && !behind.test(one.text))
    const worst = all.filter((one) => !isCall(one)).sort((a, b) => b.buffers - a.buffers)[0]
    return {
      buffers: calls.reduce((sum, { buffers }) => sum + buffers, 0),
      worst: worst?.text.slice(0, 160) ?? '',
      worstBuffers: worst?.buffers ?? 0,
    }
  }
}
