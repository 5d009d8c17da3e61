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
  /** Each message is delivered twice. */
  readonly twice?: boolean
}

export interface StrictSqs {
  readonly endpoint: string
  now(): number
  advance(ms: number): void
  inject(fault: SqsFault): Promise<void>
  /** Calls that have come in so far, by kind. */
  calls(): Promise<Readonly<Record<string, number>>>
  close(): Promise<void>
}

/** `startAt`: where its clock stands until it is moved, in ms since 1970. Absent: it has the time of this machine. */
export async function strictSqs(startAt?: number): Promise<StrictSqs> {
  const shared = new SharedArrayBuffer(16)
  const clock = new Float64Array(shared)
  clock.set(startAt === undefined ? [0, 0] : [startAt, 1])
  const thread = new Worker(new URL('./strict-sqs-thread.mjs', import.meta.url), { workerData: { clock: shared } })
  const [{ port }] = (await once(thread, 'message')) as [{ port: number }]
  let asked = 0
  const ask = async (message: object): Promise<Readonly<Record<string, number>>> => {
    const number = ++asked
    thread.postMessage({ number, ...message })
    for (;;) {
      const [answer] = (await once(thread, 'message')) as [{ number: number; calls: Record<string, number> }]
      if (answer.number === number) return answer.calls
    }
  }
  return {
    endpoint: `http://127.0.0.1:${port}`,
    now: () => (clock[1] === 1 ? 0 : Date.now()) + clock[0]!,
    advance(ms) {
      clock[0]! += ms
    },
    inject: async (fault) => void (await ask({ fault })),
    calls: async () => ask({}),
    close: async () => void (await thread.terminate()),
  }
}
