/** The workers of the demo: two processes, started as anyone would, by the command line. They never outlive the demo. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const pathOf = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))

/** A worker that has not stopped so long after it was told to is killed. */
const patienceMs = 10_000
const longestTail = 4_000
/** What they say of a run that may go on though its job is another's. */
const losses = new Set(['lease.lost', 'settle.refused', 'slot.retired'])

export class Workers {
  readonly #child: ChildProcess
  #errors = ''
  #stopping = false
  #lostRuns = 0
  /** The process of each worker, by its id. */
  readonly #pids = new Map<string, number>()
  readonly #killed = new Set<number>()
  /** Rejects when a worker process or a job has failed for good; never resolves. */
  readonly failed: Promise<never>

  constructor(queues: readonly string[], processes: number, concurrency: number) {
    // The configuration is that of MILLRACE_CONFIG.
    const args = ['work', '--json', '--queues', queues.join(',')]
    const sizes = ['--processes', String(processes), '--concurrency', String(concurrency)]
    this.#child = spawn(process.execPath, [pathOf('../../dist/cli/main.js'), ...args, ...sizes], {
      // Out of reach of the terminal's Ctrl-C, which would come twice; should the demo be killed, the channel closes and they stop.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    process.once('exit', () => this.#child.kill('SIGKILL'))
    this.#child.stderr!.on('data', (text: Buffer) => {
      this.#errors = (this.#errors + text.toString()).slice(-longestTail)
    })
    this.failed = new Promise((_, reject) => {
      const fail = (message: string) => reject(new Error(`${message}\n${this.#errors}`.trim()))
      this.#child.once('error', (error) => fail(`the workers could not be started: ${error.message}`))
      this.#child.once('close', (code, signal) => {
        if (!this.#stopping) fail(`the workers ended too early (${signal ?? `code ${code}`}):`)
      })
      createInterface({ input: this.#child.stdout! }).on('line', (line) => {
        const { event, pid, worker, child, code, id, reason, error } = JSON.parse(line) as Record<string, unknown>
        if (event === 'worker.started') this.#pids.set(String(worker), Number(pid))
        if (event === 'process.exited' && !this.#killed.has(Number(child)))
          fail(`worker process ${child} ended with code ${code}:`)
        if (losses.has(String(event))) this.#lostRuns += 1
        if (event === 'job.buried') fail(`job ${id} is dead (${reason}): ${error}`)
      })
    })
    // Whoever races against it is told; nobody has to.
    this.failed.catch(() => {})
  }

  /** Whether a run of theirs was given up while it went on, as may happen where a machine stands still for half a minute. */
  get haveLostRuns(): boolean {
    return this.#lostRuns > 0
  }

  /** Whether it is one of them and has said so. */
  knows(worker: string): boolean {
    return this.#pids.has(worker)
  }

  /** Kills the process of a worker, in the place of which another is started. Returns its number. */
  kill(worker: string): number {
    const pid = this.#pids.get(worker)!
    this.#killed.add(pid)
    process.kill(pid, 'SIGKILL')
    return pid
  }

  /** Lets them finish what they have in hand. Throws where they did not end well. */
  async stop(): Promise<void> {
    this.#stopping = true
    const { exitCode, signalCode } = this.#child
    if (exitCode !== null || signalCode !== null || this.#child.pid === undefined) return
    const ended = once(this.#child, 'close')
    this.#child.kill('SIGTERM')
    // The second signal makes the command kill its processes and end at once.
    const timer = setTimeout(() => this.#child.kill('SIGTERM'), patienceMs)
    const [code, signal] = (await ended) as [number | null, string | null]
    clearTimeout(timer)
    if (code !== 0) throw new Error(`the workers did not stop well (${signal ?? `code ${code}`}):\n${this.#errors}`)
  }
}
