/**
 * The environment of a process that runs an isolated job: the variables that it needs to find its task and its store
 * and those that its task names, the affinity and slot that it was started with, and the secrets that a command does
 * not get.
 */

import { readFileSync } from 'node:fs'
import { variableIn } from '../../core/platform/proc-text.js'

const passed = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|NODE_\w+|MILLRACE_\w+|OTEL_\w+)$/

/** Variables that give a process its devices, as drivers of several makers read them. */
const deviceVariable = /^(?:\w+_VISIBLE_DEVICES|ZE_AFFINITY_MASK)$/

/** The variables to pass on, including the `named` ones. */
export function childEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[],
): Record<string, string> {
  const names = new Set(named)
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => {
      const [name, value] = entry
      return value !== undefined && (passed.test(name) || deviceVariable.test(name) || names.has(name))
    }),
  )
}

/** Variables of a shell, a session or a package manager, which hardly anybody needs. */
const incidental =
  /^(?:_|PWD|OLDPWD|SHLVL|TERM|TERM_\w+|COLORTERM|COLUMNS|LINES|LS_COLORS|HOSTNAME|DISPLAY|EDITOR|VISUAL|PAGER|LESS\w*|MAIL|HIST\w+|PS1|DEBIAN_FRONTEND|INIT_CWD|COLOR|XDG_\w+|SSH_\w+|DBUS_\w+|WAYLAND_\w+|SUDO_\w+|SYSTEMD_\w+|INVOCATION_ID|JOURNAL_STREAM|npm_\w+)$/

/** The names of variables that are not passed on, and may be missed. */
export function withheldNames(env: Readonly<Record<string, string | undefined>>): string[] {
  const kept = childEnvironment(env, [])
  return Object.keys(env)
    .filter((name) => env[name] !== undefined && !(name in kept) && !incidental.test(name))
    .sort()
}

/** Flags whose value is a separate argument. */
const spaced = new Set(['-e', '--eval', '-p', '--print', '-pe', '--input-type', '--inspect-port'])
const dropped = /^--(inspect|cpu-prof|heap-prof|prof|max-old-space-size|max_old_space_size|test|watch)\b/

/**
 * The Node flags of the process. Flags that say how modules are loaded are passed on; flags that debug, measure or
 * evaluate are not.
 */
export function childFlags(flags: readonly string[], maxHeapBytes: number | undefined): string[] {
  const kept: string[] = []
  for (let i = 0; i < flags.length; i += 1) {
    const flag = flags[i]!
    if (spaced.has(flag)) i += 1
    else if (!dropped.test(flag)) kept.push(flag)
  }
  if (maxHeapBytes !== undefined) kept.push(`--max-old-space-size=${Math.floor(maxHeapBytes / 1_048_576)}`)
  return kept
}

/**
 * The variables of the process of a job: the affinity of the worker that started it, and the number of its slot. The
 * affinity is what a worker has that others on its machine have not, such as a device. A worker adopts the process of a
 * job only from a worker of the same affinity, as long as such a worker may come back.
 */
export const affinityVariable = 'MILLRACE_AFFINITY'
export const slotVariable = 'MILLRACE_SLOT'

/** The affinity of a worker that declares none: the devices that its environment gives it; empty if it gives none. */
export function affinityOf(env: Readonly<Record<string, string | undefined>>): string {
  const devices = Object.entries(env).filter(([name, value]) => deviceVariable.test(name) && value !== undefined)
  return devices
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(' ')
}

/** The start settings of a job's process, read from its environment. Defaults are those of a lone worker. */
export function startedWith(pid: number): { readonly affinity: string; readonly slot: number | undefined } {
  const slot = variableOf(pid, slotVariable)
  return {
    affinity: variableOf(pid, affinityVariable) ?? '',
    slot: slot !== undefined && /^\d{1,6}$/.test(slot) ? Number(slot) : undefined,
  }
}

function variableOf(pid: number, name: string): string | undefined {
  try {
    return variableIn(readFileSync(`/proc/${pid}/environ`, 'utf8'), name)
  } catch {
    // It has just ended, or belongs to somebody else.
    return undefined
  }
}

/**
 * The value that replaces the secret. A program that finds no value may take another store, and its jobs would be lost
 * there.
 */
const withheld = 'withheld:by-millrace-exec'

const leastPart = 6

type Variables = Readonly<Record<string, string | undefined>>

/**
 * For a command of `millrace exec`: the variables without secrets, except those that are `named`. `secrets`: the secret
 * texts, in every form in which they may be written.
 */
export function withoutSecrets(env: Variables, secrets: readonly string[], named: readonly string[]): Variables {
  const mayKeep = new Set(named)
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const isSecret = value !== undefined && (hasPassword(name, value) || secrets.some((one) => holds(value, one)))
      return [name, isSecret && !mayKeep.has(name) ? withheld : value]
    }),
  )
}

/** A short secret may be a part of anything. */
function holds(value: string, secret: string): boolean {
  return secret.length < leastPart ? value === secret : value.includes(secret)
}

/** Whether it is an address with a password, with which the store may have been opened. */
function hasPassword(name: string, value: string): boolean {
  return name === 'MILLRACE_STORE' ? value.includes('@') : /^rediss?(?:\+\w+)?:\/\/.*@/.test(value)
}
