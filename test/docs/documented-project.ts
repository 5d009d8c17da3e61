/** A project that the documentation tells its reader to make: its files, its command lines, and what its programs print. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { project, root } from '../cli/project.js'
import { type Block, Document } from './document.js'

/** A line of a shell without its comment. */
export const linesOf = ({ text }: Block) =>
  text
    .split('\n')
    .map((line) => line.replace(/(^|\s{2,})#.*$/, '').trim())
    .filter((line) => line !== '')

/** Every line of a shell in this document. */
export const shellLines = (document: Document) =>
  document.blocks.filter(({ language }) => language === 'sh').flatMap((block) => linesOf(block))

/** The words of a command line: spaces part them, quotes hold them together. */
export function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  )
}

/** A folder with the files that this document tells its reader to make, where `millrace` and what the programs import beside it are installed. */
export function folderOf(...told: Document[]): string {
  const files = told.flatMap((document) => document.blocks).filter(({ file }) => file !== undefined)
  const cwd = project(Object.fromEntries(files.map(({ file, text }) => [file!, text])))
  for (const name of [
    'zod',
    '@photostructure/sqlite',
    '@opentelemetry/sdk-trace-node',
    'bullmq',
    'ioredis',
    'rolldown',
    'pg',
    'pg-boss',
    'graphile-worker',
    'drizzle-orm',
    '@prisma/client',
    '@prisma/adapter-pg',
  ]) {
    mkdirSync(dirname(join(cwd, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  }
  return cwd
}

/** What a document shows in the block behind that of a program: what it prints. */
export function shownAfter(path: string, file: string): string {
  const { blocks } = new Document(path)
  return `${blocks[blocks.findIndex((block) => block.file === file) + 1]!.text}\n`
}

/** Runs a program of such a folder to its end. */
export const execute = (file: string, cwd: string, env: Record<string, string> = {}) =>
  spawnSync(process.execPath, [file], { cwd, encoding: 'utf8', timeout: 60_000, env: { ...process.env, ...env } })
