/**
 * The guard of an isolated job: a thread of its process. It keeps the lease and sends the job's output. If the job is
 * cancelled, lost or overdue, it ends the process with all its children, whatever the handler does.
 */

import { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import type { MessagePort } from 'node:worker_threads'
import type { Progress } from '../../core/job/job.js'
import { joinedLog } from '../../core/job/job-log.js'
import { messageOf } from '../../core/messages/describe.js'
import { longestTimerMs, timerMs } from '../../core/platform/timer.js'
import type { ProcessIdentity } from '../../runtime/process/process-identity.js'
import { cancelledWhileRunning } from '../../runtime/run/verdict.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Beat } from '../../stores/contract/job-beat.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import type { GuardedMessage, GuardMessage } from './child-messages.js'
import { captureFd, drainMark, type TailMessage, tailFd, tailLine } from './child-output.js'
import { endMembers, signalGroup } from './job-group.js'

export interface GuardSettings {
  readonly job: ClaimKey
  readonly leaseMs: number
  /** Infinity: none. */
  readonly timeLimitMs: number
  /** The pid of the worker that the process must not outlive; undefined: it may. */
  readonly supervisor: number | undefined
  readonly identity: ProcessIdentity
  /** Shared with the main thread: 1 once the mark after all output has been read. */
  readonly marked: Int32Array
  /** Shared with the main thread, which sets it: 1 from before it sends the settle of the job. */
  readonly settling: Int32Array
}

const tickMs = 200
/** Bytes kept for a worker that does not read its output. */
const mostUnread = 262_144
/** Output and reports are sent at most this often. */
const noteGapMs = 1_000
const retryMs = 1_000
/** The time that a handler has to end by itself once told to; SIGTERM comes after half of it. */
const endGraceMs = 5_000
/**
 * After the settle: 5 s until a busy worker has heard of it, 5 s for the hooks of the job's end, 5 s for those of the process and
 * the end of `context`, and a moment for the rest.
 */
const lastStepsMs = 17_000
/** The same if its worker is gone. */
const orphanGraceMs = 700
/** The main thread settles an overdue job within its own grace. Only a blocked main thread does not. */
const overdueMarginMs = 1_000
/** How long to wait for a store that does not answer before the process is ended. */
const lastWordMs = 400

/** Begins to keep the lease; follows the messages of the main thread on `main`, and answers there. */
export function guard(main: MessagePort, settings: GuardSettings, create: () => Promise<Store>): void {
  const opening = create()
  opening.catch(() => {})
  const one = new ProcessGuard(
    settings,
    () => opening,
    (message) => main.postMessage(message),
  )
  main.on('message', (message: GuardedMessage) => one.onMessage(message))
  one.start()
}

class ProcessGuard {
  readonly #settings: GuardSettings
  readonly #connect: () => Promise<Store>
  readonly #tell: (message: GuardMessage) => void
  readonly #printed = new StringDecoder('utf8')
  #tail: Socket | undefined
  #log = ''
  #progress: Progress | undefined
  /** Text that may be the beginning of the mark. */
  #heldBack = ''
  readonly #isDrained: Promise<void>
  #drained: () => void = () => {}
  #isKeeping = false
  #begunAt: number | undefined
  #beating: Promise<void> | undefined
  /** When the beat that renewed the lease last was sent, and when the last beat of all was. */
  #renewedAt = Number.NEGATIVE_INFINITY
  #sentAt = Number.NEGATIVE_INFINITY
  /** The process is to end, even if the job is still being cancelled. */
  #isEnding = false
  /** The lease is not kept any longer. */
  #isOver = false
  #overdue: NodeJS.Timeout | undefined

  constructor(settings: GuardSettings, connect: () => Promise<Store>, tell: (message: GuardMessage) => void) {
    this.#settings = settings
    this.#connect = connect
    this.#tell = tell
    this.#isDrained = new Promise((resolve) => {
      this.#drained = resolve
    })
  }

  start(): void {
    this.#listen()
    setInterval(() => this.#tick(), tickMs)
    this.#tick()
  }

  onMessage(message: GuardedMessage): void {
    switch (message.kind) {
      case 'begun':
        this.#begin()
        void this.#beat()
        return
      case 'progress':
        this.#progress = { fraction: message.fraction, ...(message.note === undefined ? {} : { note: message.note }) }
        return
      case 'drain':
        void this.#drain()
        return
      case 'settled':
        // The main thread ends the process now; users' hooks may hang.
        this.#isOver = true
        clearTimeout(this.#overdue)
        setTimeout(killGroup, lastStepsMs)
    }
  }

  #begin(): void {
    const { timeLimitMs } = this.#settings
    const longestMs = timeLimitMs + Math.min(endGraceMs, timeLimitMs) + overdueMarginMs
    this.#overdue = longTimeout(killGroup, longestMs)
    this.#begunAt = performance.now()
  }

  #tick(): void {
    const { supervisor, leaseMs } = this.#settings
    if (this.#isOver) return
    if (!this.#isEnding && supervisor !== undefined && process.ppid !== supervisor) {
      void this.#end('orphaned', orphanGraceMs, { kind: 'release', delayMs: 0 })
      return
    }
    const now = performance.now()
    const hasNotes = this.#log !== '' || this.#progress !== undefined
    const isDue = now >= this.#renewedAt + leaseMs / 3 || hasNotes
    if (isDue && now >= this.#sentAt + (hasNotes ? noteGapMs : retryMs)) void this.#beat()
  }

  /** One beat at a time. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#send().finally(() => {
      this.#beating = undefined
    })
    return this.#beating
  }

  async #send(): Promise<void> {
    const { job, leaseMs } = this.#settings
    const [log, progress] = [this.#log, this.#progress]
    this.#log = ''
    this.#progress = undefined
    if (log !== '') this.#passOn(['cut'])
    this.#sentAt = performance.now()
    const sentAt = this.#sentAt
    try {
      const store = await this.#connect()
      const [answer] = await store.extend([{ ...job, leaseMs, beat: this.#beatOf(log, progress) }])
      this.#renewedAt = sentAt
      if (log !== '' && answer !== 'lost') this.#passOn(['sent'])
      if (answer === 'lost') this.#lost()
      else if (answer === 'cancel') void this.#end('cancelled', endGraceMs, cancelledWhileRunning)
      else if (!this.#isKeeping) {
        this.#isKeeping = true
        this.#tell({ kind: 'keeping' })
      }
    } catch (error) {
      // The job goes on while the store is away: only the store can say that its lease is lost.
      this.#log = joinedLog(log, this.#log)
      this.#progress ??= progress
      this.#tell({ kind: 'failed', message: messageOf(error) })
    }
  }

  #beatOf(log: string, progress: Progress | undefined): Beat {
    const { host, boot, pidns, pid, ticks } = this.#settings.identity
    return {
      ...{ host, boot, pidns, pid, ticks },
      ...(this.#begunAt === undefined ? {} : { startedMs: performance.now() - this.#begunAt }),
      ...(log === '' ? {} : { log }),
      ...(progress === undefined ? {} : { progress }),
    }
  }

  /** Reads the output of the process and of its children. */
  #listen(): void {
    const capture = new Socket({ fd: captureFd, readable: true, writable: false })
    const tail = new Socket({ fd: tailFd, readable: false, writable: true })
    this.#tail = tail
    // Nobody reads it once the worker is gone.
    tail.on('error', () => {
      this.#tail = undefined
    })
    capture.on('error', () => {})
    capture.on('data', (bytes: Buffer) => this.#print(bytes))
  }

  #print(bytes: Buffer): void {
    const printed = this.#heldBack + this.#printed.write(bytes)
    const [before, behind] = printed.split(drainMark, 2)
    this.#heldBack = behind === undefined ? markBegunIn(printed) : ''
    const text = behind === undefined ? printed.slice(0, printed.length - this.#heldBack.length) : before + behind
    if (text !== '') this.#passOn(['printed', text.toWellFormed()])
    this.#log = joinedLog(this.#log, text.toWellFormed())
    if (behind === undefined) return
    Atomics.store(this.#settings.marked, 0, 1)
    Atomics.notify(this.#settings.marked, 0)
    this.#drained()
  }

  #passOn(message: TailMessage): void {
    // Unread output must not pile up.
    if (this.#tail !== undefined && this.#tail.writableLength < mostUnread) this.#tail.write(tailLine(message))
  }

  /** The mark comes after all earlier output: once it is read, all of that is here. */
  async #drain(): Promise<void> {
    await endsWithin(noteGapMs, this.#isDrained)
    await this.#beating
    if (this.#log !== '' || this.#progress !== undefined) await endsWithin(noteGapMs, this.#beat())
    this.#tell({ kind: 'drained' })
  }

  /**
   * Another worker may run the job from now on, so there is no time left. A grace is for jobs that are still this
   * process' own.
   */
  #lost(): void {
    // The store has heard how the job ended, perhaps this moment: no handler runs, and the main thread reports the
    // answer.
    if (this.#isOver || Atomics.load(this.#settings.settling, 0) === 1) return
    this.#isOver = true
    this.#passOn(['lost'])
    killGroup()
  }

  /**
   * Tells the handler to stop, and ends the process if it does not. `settlement`: how the job is then settled. Once the main thread
   * has settled it, the process has the time of its last steps instead.
   */
  async #end(kind: 'cancelled' | 'orphaned', graceMs: number, settlement: GuardSettlement): Promise<void> {
    if (this.#isEnding || this.#isOver) return
    this.#isEnding = true
    this.#tell({ kind })
    this.#unlessOver(graceMs / 2, () => signalGroup(process.pid, 'SIGTERM'))
    this.#unlessOver(graceMs, () => void this.#kill(settlement))
  }

  #unlessOver(ms: number, due: () => void): void {
    setTimeout(() => {
      if (!this.#isOver) due()
    }, timerMs(ms))
  }

  /** Sends the last settle, if the store takes it soon, and ends the whole group. Never rejects. */
  async #kill(settlement: GuardSettlement): Promise<void> {
    // Another run may begin once the job is settled.
    endMembers()
    const settled = this.#connect().then((store) => store.settle([{ ...this.#settings.job, ...settlement }]))
    await endsWithin(lastWordMs, settled).catch(() => {})
    killGroup()
  }
}

type GuardSettlement = { readonly kind: 'release'; readonly delayMs: 0 } | typeof cancelledWhileRunning

/** The longest end of the text with which the mark begins. */
function markBegunIn(text: string): string {
  for (let length = drainMark.length - 1; length > 0; length -= 1)
    if (text.endsWith(drainMark.slice(0, length))) return drainMark.slice(0, length)
  return ''
}

function killGroup(): void {
  signalGroup(process.pid, 'SIGKILL')
}

function longTimeout(due: () => void, ms: number): NodeJS.Timeout | undefined {
  // The main thread ends a job that takes a month.
  return ms > longestTimerMs ? undefined : setTimeout(due, ms)
}
