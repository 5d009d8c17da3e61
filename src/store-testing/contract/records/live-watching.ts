/** Contract cases: live messages about a queue, from any process to all watchers. */

import assert from 'node:assert/strict'
import type { LiveMessages } from '../../../stores/contract/live-messages.js'
import { live, plainConcern } from '../scenes/contract-case.js'
import { soon } from '../scenes/scene.js'

/** The messages that one watcher has heard, in order. */
class Ear {
  readonly #heard: (string | undefined)[] = []
  #wake = () => {}
  readonly #stop = new AbortController()

  static async on(messages: LiveMessages, queue: string): Promise<Ear> {
    const ear = new Ear()
    await messages.watch(queue, (message) => ear.#hear(message), ear.#stop.signal)
    return ear
  }

  #hear(message: string | undefined): void {
    this.#heard.push(message)
    this.#wake()
  }

  stop(): void {
    this.#stop.abort()
  }

  /** The first `count`, once they have come. */
  async first(count: number): Promise<(string | undefined)[]> {
    const all = async () => {
      while (this.#heard.length < count) await new Promise<void>((resolve) => (this.#wake = resolve))
      return this.#heard.slice(0, count)
    }
    return soon(all())
  }
}

/** The store forgets a watcher that stops soon, but not at once. */
async function nobodyWatches(messages: LiveMessages, queue: string): Promise<void> {
  for (let looks = 0; await messages.publish(queue); looks += 1) assert.ok(looks < 10_000, 'somebody still watches')
}

export const liveWatching = plainConcern('live messages', [live], {
  async 'a message without watchers goes to nobody, and the answer says so'(scene) {
    assert.equal(await scene.messages.publish(scene.queue, 'lost'), false)
    const ear = await Ear.on(scene.messages, scene.queue)
    assert.equal(await scene.messages.publish(scene.queue, 'heard'), true)
    assert.deepEqual(await ear.first(1), ['heard'])
  },

  async 'all watchers receive every message in order, from any publisher'(scene) {
    const other = (await scene.harness.open()).live!
    const ears = [await Ear.on(scene.messages, scene.queue), await Ear.on(other, scene.queue)]
    const sent = Array.from({ length: 300 }, (_, i) => `message ${i} "\u00e4\u{1f3a1}"`)
    for (const message of sent) await other.publish(scene.queue, message)
    for (const ear of ears) assert.deepEqual(await ear.first(300), sent)
  },

  async 'asking whether anybody watches sends nothing'(scene) {
    const ear = await Ear.on(scene.messages, scene.queue)
    assert.equal(await scene.messages.publish(scene.queue), true)
    await scene.messages.publish(scene.queue, 'one')
    assert.deepEqual(await ear.first(1), ['one'])
  },

  async 'a watcher of one queue receives nothing from another'(scene) {
    await scene.openQueue({ name: 'other' })
    const [one, other] = [await Ear.on(scene.messages, scene.queue), await Ear.on(scene.messages, 'other')]
    await scene.messages.publish(scene.queue, 'of one')
    await scene.messages.publish('other', 'of the other')
    assert.deepEqual(await one.first(1), ['of one'])
    assert.deepEqual(await other.first(1), ['of the other'])
    assert.equal(await scene.messages.publish('nobody'), false)
  },

  async 'a watch ends with its signal, and others go on'(scene) {
    const [one, other] = [await Ear.on(scene.messages, scene.queue), await Ear.on(scene.messages, scene.queue)]
    one.stop()
    assert.equal(await scene.messages.publish(scene.queue, 'a'), true)
    assert.deepEqual(await other.first(1), ['a'])
    other.stop()
    await nobodyWatches(scene.messages, scene.queue)
    assert.equal(await scene.messages.publish(scene.queue, 'b'), false)
  },

  async 'a watch ends with its store'(scene) {
    const other = await scene.harness.open()
    await Ear.on(other.live!, scene.queue)
    assert.equal(await scene.messages.publish(scene.queue), true)
    await other.close()
    await nobodyWatches(scene.messages, scene.queue)
    await assert.rejects(other.live!.publish(scene.queue), { code: 'closed' })
    await assert.rejects(Ear.on(other.live!, scene.queue), { code: 'closed' })
  },

  async 'messages of 100 kB arrive unchanged'(scene) {
    const ear = await Ear.on(scene.messages, scene.queue)
    const sent = Array.from({ length: 3 }, (_, i) => String(i).repeat(100_000))
    for (const message of sent) await scene.messages.publish(scene.queue, message)
    assert.deepEqual(await ear.first(3), sent)
  },
})
