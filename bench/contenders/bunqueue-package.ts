/**
 * bunqueue as published, and the Bun that it needs. Neither is a dependency of this package: its engine runs on no Node.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Runner } from '../measuring-process.js'

const folder = join(import.meta.dirname, '../../node_modules/.cache/bunqueue')
const bun = join(folder, 'node_modules/@oven/bun-linux-x64/bin/bun')

export const bunqueueInstall =
  'npm install --prefix node_modules/.cache/bunqueue @oven/bun-linux-x64@1.4.5 bunqueue@2.9.5'
export const bunqueueServer: Runner = [bun, join(folder, 'node_modules/bunqueue/dist/main.js')]

/** The parts of the package that are used here. */
export interface Bunqueue {
  Queue: new (name: string, options: object) => BunQueue
  Worker: new (name: string, run: (job: { readonly data: unknown }) => Promise<void>, options: object) => BunWorker
  /** Ends the engine of this process. */
  shutdownManager(): void
}

export interface BunQueue {
  add(name: string, data: unknown, options: object): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: unknown; opts: object }[]): Promise<unknown>
  waitUntilReady(): Promise<void>
  disconnect(): Promise<void>
}

export interface BunWorker {
  on(event: 'completed', listener: () => void): void
  on(event: 'error', listener: (error: unknown) => void): void
  waitUntilReady(): Promise<void>
  close(): Promise<void>
}

/** Undefined if it is not installed. */
export function bunRunner(): Runner | undefined {
  return existsSync(bunqueueServer[1]!) && existsSync(bun) ? [bun] : undefined
}

/** Only in a process of Bun. */
export async function loadBunqueue(): Promise<Bunqueue> {
  return import(join(folder, 'node_modules/bunqueue/dist/client/index.js'))
}
