/**
 * The command `import`: brings settings or tasks of another queue. From Kale's settings it writes a configuration; it
 * opens no store and runs no code of the settings.
 */

import { existsSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { ConfigError } from '../../../core/errors.js'
import { messageOf } from '../../../core/messages/describe.js'
import { literal, literalText } from '../../code-literal.js'
import { withJson } from '../../mill-command.js'
import { printable } from '../../printable.js'
import { OperationError, UsageError } from '../../process/exit-code.js'
import { count } from '../../terminal/figures.js'
import { Terminal } from '../../terminal/terminal.js'
import { addImportBlueque } from './import-blueque.js'
import { type ConfigDraft, type DraftStore, draftOf, kaleSettings } from './kale-settings.js'
import { isLookup, type Lookup } from './python-value.js'
import { type ImportNote, mostSettingsBytes, settingsIn, settingsText } from './settings-file.js'

interface ImportFlags {
  readonly out: string
  readonly force?: boolean
  readonly json?: boolean
}

interface Imported {
  readonly config: string
  readonly notes: readonly ImportNote[]
}

const toStdout = '-'

export function addImport(program: Command): void {
  const imports = program
    .command('import')
    .description('Import settings of Kale, or waiting tasks of Blueque')
    .helpCommand(false)
  const command = imports
    .command('kale <settings>')
    .description("Write a configuration from Kale's settings module, a Python file")
    .option('--out <file>', 'the file to write; - prints it', 'millrace.config.ts')
    .option('--force', 'overwrite an existing file')
    .addHelpText(
      'after',
      `
  Reads the file line by line and runs no Python. It reads NAME = literal, os.getenv, os.environ and os.path.join. Settings
  that are in a block (if, try …), take several lines or are computed are listed as unread. Secrets are never copied.

  taken: it is in the configuration · left: it has no counterpart, or belongs elsewhere · unread: do it by hand

Example:
  $ millrace import kale taskworker/settings.py`,
    )
  withJson(command, 'print {"file","config","notes":[{"line","level","setting","text"}]}').action(
    (path: string, flags: ImportFlags) => importKale(path, flags, new Terminal({ json: flags.json ?? false })),
  )
  addImportBlueque(imports)
}

async function importKale(path: string, { out, force = false }: ImportFlags, terminal: Terminal): Promise<void> {
  const text = settingsText(await bytesOf(path), path)
  const { config, notes } = imported(text, resolve(path), out === toStdout ? process.cwd() : dirname(resolve(out)))
  if (out !== toStdout) await write(out, config, force)
  if (out !== toStdout || terminal.json) {
    terminal.print({ ...(out !== toStdout && { file: out }), config, notes }, () => [
      ...noteLines(notes, terminal),
      '',
      `${printable(out)}: written. List your tasks in it, then run \`millrace doctor\`.`,
    ])
    return
  }
  terminal.print({}, () => [config.trimEnd()])
  // Only the configuration goes to stdout, which a program may read.
  process.stderr.write(`${noteLines(notes, terminal).join('\n')}\n`)
}

/** The imported settings. Throws `ConfigError` if the text names no setting of Kale. */
function imported(text: string, settingsFile: string, configFolder: string): Imported {
  const { settings, notes: unread } = settingsIn(text, basename(settingsFile))
  const named = [...settings.keys(), ...unread.map(({ setting }) => setting)]
  if (!named.some((name) => name !== undefined && kaleSettings.has(name)))
    throw new ConfigError('the settings file', [
      { path: settingsFile, message: 'names no setting of Kale, such as QUEUE_CONFIG; nothing was written' },
    ])
  const folders = { working: process.cwd(), settings: dirname(settingsFile), config: configFolder }
  const { draft, notes } = draftOf(settings, folders)
  const queueFile = isLookup(draft.queueFile) ? String(draft.queueFile.otherwise) : draft.queueFile
  const isThere = existsSync(resolve(configFolder, queueFile))
  const missing: ImportNote = {
    level: 'left',
    setting: 'QUEUE_CONFIG',
    text: `${queueFile} is not there, seen from the configuration: put its path right in \`queues\``,
  }
  const all = [...unread, ...notes, ...(isThere ? [] : [missing])]
  const last = Number.POSITIVE_INFINITY
  return { config: configText(draft), notes: all.sort((a, b) => (a.line ?? last) - (b.line ?? last)) }
}

async function bytesOf(path: string): Promise<Uint8Array> {
  const refuse = (message: string): never => {
    throw new ConfigError('the settings file', [{ path, message }])
  }
  const file = await open(path).catch((error: unknown) => refuse(`cannot be read: ${messageOf(error)}`))
  try {
    if (!(await file.stat()).isFile()) return refuse('is no file')
    // Also bounds a file that has grown meanwhile, or does not report its size.
    const bytes = Buffer.alloc(mostSettingsBytes + 1)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    if (bytesRead <= mostSettingsBytes) return bytes.subarray(0, bytesRead)
    return refuse(`is larger than a settings file can be: ${count(mostSettingsBytes)} bytes`)
  } finally {
    await file.close()
  }
}

async function write(out: string, config: string, force: boolean): Promise<void> {
  try {
    await writeFile(out, config, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST')
      throw new UsageError(`'${out}' is there already: --force overwrites it, and --out names another file.`)
    throw new OperationError(`'${out}' could not be written: ${messageOf(error)}`)
  }
}

function noteLines(notes: readonly ImportNote[], { colors }: Terminal): string[] {
  const paint = { taken: colors.green, left: colors.yellow, unread: colors.red }
  const place = ({ line }: ImportNote) => (line === undefined ? '-' : String(line))
  const [lineWidth, nameWidth] = [
    Math.max(...notes.map((note) => place(note).length)),
    Math.max(...notes.map(({ setting = '' }) => setting.length)),
  ]
  // Not cut to the width of the terminal: the remedy is at the end.
  return notes.map((note) => {
    const { level, setting = '', text } = note
    const what = nameWidth === 0 ? '' : `  ${setting.padEnd(nameWidth)}`
    return `${place(note).padStart(lineWidth)}  ${paint[level](level.padEnd(6))}${what}  ${printable(text)}`
  })
}

/**
 * The draft as TypeScript, with a line break at its end. Whatever texts it holds, the result is a program that does
 * nothing else.
 */
function configText({ store, queueFile, maxPayloadBytes, selector, maxRssMb }: ConfigDraft): string {
  const worker = [
    ...(selector === undefined ? [] : [`selector: ${literal(selector)}`]),
    ...(maxRssMb === undefined ? [] : [`maxRss: ${template([maxRssMb, 'MB'])}`]),
  ]
  const { before, code } = storeCode(store)
  const options = [
    `store: ${code},`,
    "namespace: '', // the queues keep the names that they have in Kale",
    `queues: ${template([queueFile])},`,
    ...(maxPayloadBytes === undefined ? [] : [`maxPayloadBytes: ${numberCode(maxPayloadBytes)},`]),
    ...(worker.length === 0 ? [] : [`worker: { ${worker.join(', ')} },`]),
    'tasks: [], // yours; `retry: { backoff: exponential({ jitter: false }) }` waits as Kale does',
  ]
  return `/** The configuration: Kale's settings, brought here by \`millrace import kale\`. */

import { millrace } from 'millrace'
${before}
export default millrace({
${options.map((option) => `  ${option}\n`).join('')}})
`
}

function storeCode({ region, endpoint = [] }: DraftStore): { readonly before: string; readonly code: string } {
  const address = ['sqs://', region]
  const [only, ...more] = endpoint
  if (only === undefined) return { before: '', code: template(address) }
  if (more.length > 0 || !isLookup(only)) return { before: '', code: template([...address, '?endpoint=', ...endpoint]) }
  // An empty text means AWS's own endpoint.
  return {
    before: `\nconst endpoint = ${lookupCode(only)}\n`,
    code: `${template(address)} + (endpoint === '' ? '' : \`?endpoint=\${endpoint}\`)`,
  }
}

function numberCode(value: number | Lookup): string {
  return isLookup(value) ? `Number(${lookupCode(value)})` : String(value)
}

/** A look-up as text; empty if the variable is not set and there is no default. */
function lookupCode({ variable, otherwise = '' }: Lookup): string {
  return `process.env[${literal(variable)}] ?? ${literal(String(otherwise))}`
}

/** The joined parts, as one literal if possible. */
function template(parts: readonly (string | number | Lookup)[]): string {
  if (!parts.some((part) => isLookup(part))) return literal(parts.join(''))
  const [only] = parts
  if (parts.length === 1) return lookupCode(only as Lookup)
  const inner = parts.map((part) =>
    isLookup(part) ? `\${${lookupCode(part)}}` : literalText(String(part)).replace(/[`$]/g, '\\$&'),
  )
  return `\`${inner.join('')}\``
}
