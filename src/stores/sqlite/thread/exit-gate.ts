/**
 * The exit gate: a process does not end while one of its threads is inside a native driver. When a process exits, Node
 * ends its threads wherever they are. A binding that is cut off throws where nothing can catch it, and a process that
 * meant to end with 0 is aborted.
 */

import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

/**
 * The longest time that an exit waits: a disk, or another process that holds a lock, may keep a thread inside for ever.
 */
const mostMs = 1_000

const name = 'millrace exit gate'
/** The two cells: the number of threads inside, and 1 from the moment the process ends. */
const inside = 0
const ending = 1

export class ExitGate {
  readonly #cells: Int32Array
  /** How often this thread has entered and not left. */
  #depth = 0

  constructor(cells: Int32Array) {
    this.#cells = cells
  }

  /**
   * Called before native work, also within other native work. Never returns if the process is ending: the thread ends
   * with it.
   */
  enter(): void {
    if (this.#depth === 0) this.#pass()
    this.#depth += 1
  }

  leave(): void {
    this.#depth -= 1
    if (this.#depth === 0) this.#give()
  }

  /** Does native work. The caller passes the result on outside, because the receiver may end the thread. */
  inside<T>(work: () => T): T {
    this.enter()
    try {
      return work()
    } finally {
      this.leave()
    }
  }

  /** A pause amid native work, during which the process may end. */
  outside(pause: () => void): void {
    const depth = this.#depth
    this.#depth = 0
    this.#give()
    try {
      pause()
    } finally {
      this.#pass()
      this.#depth = depth
    }
  }

  /** Lets no thread in any more, and waits at most a second until none is inside. */
  close(): void {
    Atomics.store(this.#cells, ending, 1)
    const until = performance.now() + mostMs
    for (let count = this.#count(); count > 0 && performance.now() < until; count = this.#count())
      Atomics.wait(this.#cells, inside, count, until - performance.now())
  }

  #pass(): void {
    Atomics.add(this.#cells, inside, 1)
    if (Atomics.load(this.#cells, ending) === 0) return
    this.#give()
    Atomics.wait(this.#cells, ending, 1)
  }

  #give(): void {
    Atomics.sub(this.#cells, inside, 1)
    Atomics.notify(this.#cells, inside)
  }

  #count(): number {
    return Atomics.load(this.#cells, inside)
  }
}

let gate: ExitGate | undefined

/**
 * The gate of this process. A thread shares it with the thread that started it, if that thread had called this before.
 * Only the exit of the main thread closes it.
 */
export function exitGate(): ExitGate {
  if (gate !== undefined) return gate
  const inherited = getEnvironmentData(name) as Int32Array | undefined
  const cells = inherited ?? new Int32Array(new SharedArrayBuffer(8))
  const made = new ExitGate(cells)
  gate = made
  if (inherited === undefined) {
    setEnvironmentData(name, cells)
    if (isMainThread) process.once('exit', () => made.close())
  }
  return made
}
