/** The subscriber: listens to channels on one connection, or on a cluster on one connection per node. */

import type { Cluster, Redis } from 'ioredis'
import type { RedisHost } from './redis-address.js'
import type { RedisClients } from './redis-connection-options.js'
import { unreachable } from './redis-errors.js'
import { patienceMs, RedisLink } from './redis-link.js'

type Heard = (message: string | undefined) => void

/** How often each connection must answer, and each channel is looked up among the nodes. */
const renewMs = 2_000

interface Channel {
  readonly name: string
  readonly ears: Set<Heard>
  /** The connection it was last subscribed on, and whether a message may have been missed since. */
  at: RedisLink<Redis> | undefined
  missed: boolean
}

export class RedisSubscriber {
  readonly #clients: RedisClients
  /** Knows the nodes of a cluster. */
  readonly #main: RedisLink
  readonly #links = new Map<string, RedisLink<Redis>>()
  readonly #channels = new Map<string, Channel>()
  #timer: NodeJS.Timeout | undefined

  constructor(clients: RedisClients, main: RedisLink) {
    this.#clients = clients
    this.#main = main
  }

  /** See `RedisClient.listen`. */
  async listen(name: string, heard: Heard): Promise<() => void> {
    const channel = this.#channels.get(name) ?? { name, ears: new Set(), at: undefined, missed: false }
    // One function may listen twice, and each time is stopped by itself.
    const ear: Heard = (message) => heard(message)
    channel.ears.add(ear)
    this.#channels.set(name, channel)
    const stop = () => this.#leave(channel, ear)
    this.#timer ??= setInterval(() => this.#renew(), renewMs).unref()
    const giveUp = AbortSignal.timeout(patienceMs)
    while (!(await this.#subscribe(channel))) {
      if (!giveUp.aborted) await new Promise((resolve) => setTimeout(resolve, 50))
      else {
        stop()
        throw unreachable(this.#clients.where, undefined)
      }
    }
    return stop
  }

  close(): void {
    clearInterval(this.#timer)
    this.#channels.clear()
    for (const link of this.#links.values()) link.close()
  }

  #leave(channel: Channel, ear: Heard): void {
    channel.ears.delete(ear)
    if (channel.ears.size > 0 || this.#channels.get(channel.name) !== channel) return
    this.#channels.delete(channel.name)
    const client = channel.at?.client
    if (client?.status !== 'ready') return
    const left = this.#clients.isCluster ? client.sunsubscribe(channel.name) : client.unsubscribe(channel.name)
    left.catch(() => {})
  }

  /**
   * Subscribes again channels that have moved or failed, and on each connection the channel that was subscribed there
   * longest ago. This one command shows whether the connection works, and in turn for each channel whether its node
   * still has it.
   */
  #renew(): void {
    const asked = new Set<RedisLink<Redis>>()
    for (const channel of [...this.#channels.values()]) {
      const link = this.#linkFor(channel.name)
      if (link !== undefined && link === channel.at && !channel.missed && asked.has(link)) continue
      if (link !== undefined) asked.add(link)
      // Its turn comes last.
      this.#channels.delete(channel.name)
      this.#channels.set(channel.name, channel)
      void this.#subscribe(channel)
    }
  }

  /** Returns whether the channel is subscribed now. It may be subscribed already. Never rejects. */
  async #subscribe(channel: Channel): Promise<boolean> {
    const link = this.#linkFor(channel.name)
    if (link === undefined) return false
    try {
      await link.ready(patienceMs)
      const { client } = link
      await (this.#clients.isCluster ? client.ssubscribe(channel.name) : client.subscribe(channel.name))
    } catch {
      // A slot may have moved, so look it up again. For other errors the next renewal tries again.
      channel.missed = channel.at !== undefined
      if (this.#clients.isCluster) (this.#main.client as Cluster).refreshSlotsCache()
      return false
    }
    if (channel.at !== undefined && channel.at !== link) channel.missed = true
    channel.at = link
    if (channel.missed) this.#tell(channel, undefined)
    channel.missed = false
    return true
  }

  #tell(channel: Channel, message: string | undefined): void {
    for (const ear of channel.ears) ear(message)
  }

  /** The connection to the node that owns the channel's slot. */
  #linkFor(name: string): RedisLink<Redis> | undefined {
    const owner = this.#clients.isCluster ? this.#ownerOf(name) : ''
    if (owner === undefined) return undefined
    const known = this.#links.get(owner)
    if (known !== undefined) return known
    const link = new RedisLink(this.#clients, this.#clients.single(hostOf(owner)))
    this.#links.set(owner, link)
    const hear = (channel: string, message: string) => {
      const known = this.#channels.get(channel)
      if (known !== undefined) this.#tell(known, message)
    }
    link.client.on('message', hear)
    link.client.on('smessage', hear)
    link.client.on('close', () => {
      for (const channel of this.#channels.values()) if (channel.at === link) channel.missed = true
    })
    link.client.on('ready', () => {
      for (const channel of this.#channels.values()) if (channel.at === link) void this.#subscribe(channel)
    })
    return link
  }

  #ownerOf(name: string): string | undefined {
    const slot = this.#clients.call('ssubscribe', '', name).getSlot()
    return (this.#main.client as Cluster).slots[slot]?.[0]
  }
}

function hostOf(node: string): RedisHost | undefined {
  const colon = node.lastIndexOf(':')
  return node === '' ? undefined : { host: node.slice(0, colon), port: Number(node.slice(colon + 1)) }
}
