/** An SQS for tests: an emulator as strict as the service, in a thread, with a clock that the test moves. */

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** What goes wrong with the next `times` calls (default 1) of this kind, or of any. */
export interface SqsFault {
  readonly call?: string
  readonly times?: number
  /** The call is refused with this error. */
  readonly error?: string
  readonly status?: number
  /** The connection is cut before the call is carried out, or before it is answered. */
  readonly cut?: 'before' | 'after'
  /** The entries with these numbers fail. */
  readonly entries?: readonly number[]
  readonly code?: string
  readonly senderFault?: boolean
  /** Nothing is delivered, though something is there. */
  readonly empty?: boolean
  /** What is delivered comes in the reverse order. */
  readonly reversed?: boolean
  /** Each message is delivered twice, by one call. */
  readonly twice?: boolean
  /** This share of the messages (0 … 1) is delivered twice, the second time by another call and under another receipt. */
  readonly copies?: number
}

export interface StrictSqs {
  readonly endpoint: string
  now(): number
  advance(ms: number): void
  inject(fault: SqsFault): Promise<void>
  /** Calls that have come in so far, by kind. */
  calls(): Promise<Readonly<Record<string, number>>>
  /** The bodies of messages that were delivered by a copy, and how many copies lie there still. */
  copies(): Promise<{ readonly bodies: readonly string[]; readonly left: number }>
  close(): Promise<void>
}

interface Answer {
  readonly number: number
  readonly calls: Readonly<Record<string, number>>
  readonly copies: { readonly bodies: readonly string[]; readonly left: number }
}

/** `startAt`: where its clock stands until it is moved, in ms since 1970. Absent: it has the time of this machine. */
export async function strictSqs(startAt?: number): Promise<StrictSqs> {
  const shared = new SharedArrayBuffer(16)
  const clock = new Float64Array(shared)
  clock.set(startAt === undefined ? [0, 0] : [startAt, 1])
  const thread = new Worker(new URL('./strict-sqs-thread.mjs', import.meta.url), { workerData: { clock: shared } })
  const [{ port }] = (await once(thread, 'message')) as [{ port: number }]
  let asked = 0
  const ask = async (message: object): Promise<Answer> => {
    const number = ++asked
    thread.postMessage({ number, ...message })
    for (;;) {
      const [answer] = (await once(thread, 'message')) as [Answer]
      if (answer.number === number) return answer
    }
  }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    now: () => (clock[1] === 1 ? 0 : Date.now()) + clock[0]!,
    advance(ms) {
      clock[0]! += ms
    },
    inject: async (fault) => void (await ask({ fault })),
    calls: async () => (await ask({})).calls,
    copies: async () => (await ask({})).copies,
    close: async () => void (await thread.terminate()),
  }
}
