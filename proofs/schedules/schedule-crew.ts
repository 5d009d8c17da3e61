/** The crew of the proof `schedules`: five processes that look for due ticks. Some are killed and replaced. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { forkedProgram } from '../forked-program.js'
import type { SiteWords } from './schedule-site.js'
import type { LeadWord } from './schedule-worker.js'

export class ScheduleCrew {
  kills = 0
  killedLeads = 0
  readonly #words: SiteWords
  readonly #processes = new Map<ChildProcess, boolean>()

  constructor(words: SiteWords) {
    this.#words = words
  }

  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#started()))
  }

  /** Kills the lead, or any process if none leads. Another process replaces it. */
  async kill(): Promise<void> {
    const [[victim, isLead]] = [...this.#processes].sort(([, a], [, b]) => Number(b) - Number(a)) as [
      [ChildProcess, boolean],
    ]
    this.#processes.delete(victim)
    this.kills += 1
    if (isLead) this.killedLeads += 1
    victim.kill('SIGKILL')
    await this.#started()
  }

  async stop(): Promise<void> {
    for (const one of this.#processes.keys()) {
      const ended = once(one, 'exit')
      one.kill('SIGKILL')
      await ended
    }
    this.#processes.clear()
  }

  async #started(): Promise<void> {
    const program = join(import.meta.dirname, 'schedule-worker.ts')
    const child = forkedProgram(program, [JSON.stringify(this.#words)])
    this.#processes.set(child, false)
    child.on('message', ({ isLead }: LeadWord) => {
      if (this.#processes.has(child)) this.#processes.set(child, isLead)
    })
    await once(child, 'message')
  }
}
