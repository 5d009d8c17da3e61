/** The crew of the proof `shared-services`: two replicas each of two services, which are deployed and killed. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { forkedProgram } from '../forked-program.js'
import type { ServiceWord, ServiceWords } from './shared-service.js'

export const services = ['billing', 'crm'] as const
export type Service = (typeof services)[number]
const replicas = 2

export class SharedCrew {
  deploys = 0
  kills = 0
  readonly #store: string
  readonly #heard: (word: ServiceWord) => void
  readonly #running = new Map<Service, ChildProcess[]>(services.map((service) => [service, []]))
  readonly #versions = new Map<Service, number>(services.map((service) => [service, 1]))

  constructor(store: string, heard: (word: ServiceWord) => void) {
    this.#store = store
    this.#heard = heard
  }

  async start(): Promise<void> {
    for (const service of services) for (let i = 0; i < replicas; i += 1) await this.#added(service)
  }

  versionOf(service: Service): number {
    return this.#versions.get(service)!
  }

  /** Replaces the replicas of a service by those of its next version, one after the other. */
  async deploy(service: Service): Promise<void> {
    const old = this.#running.get(service)!.splice(0)
    this.#versions.set(service, this.versionOf(service) + 1)
    for (const one of old) {
      await this.#added(service)
      await stopped(one)
    }
    this.deploys += 1
  }

  /** Kills a replica, and starts another in its place. */
  async kill(service: Service): Promise<void> {
    const victim = this.#running.get(service)!.shift()!
    const ended = once(victim, 'exit')
    victim.kill('SIGKILL')
    await ended
    this.kills += 1
    await this.#added(service)
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.values()].flat().map(stopped))
  }

  async #added(service: Service): Promise<void> {
    const words: ServiceWords = { store: this.#store, service, version: this.versionOf(service) }
    const child = forkedProgram(join(import.meta.dirname, 'shared-service.ts'), [JSON.stringify(words)])
    this.#running.get(service)!.push(child)
    const ready = new Promise<void>((resolve, reject) => {
      child.on('message', (word: ServiceWord) => {
        if (word.kind === 'ready') resolve()
        else this.#heard(word)
      })
      child.once('exit', (code) => reject(new Error(`a replica of ${service} ended with ${code}`)))
    })
    await ready
  }
}

async function stopped(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.send('stop')
  await ended
}
