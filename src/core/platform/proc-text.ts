/**
 * The texts of `/proc`, as far as they tell: a process that ends while it is read leaves an empty or torn text, and one that
 * has ended a shorter one. What a text does not say is undefined, and nothing may be concluded from that. Pure.
 */

/** Of `/proc/<pid>/status`, field `VmRSS` (proc_pid_status(5)): bytes in memory. A zombie has none left, and no such field. */
export function residentBytesIn(status: string): number | undefined {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
}

/** Of `/proc/<pid>/task/<tid>/status`: how often the thread gave up its processor, or had to. */
export function switchesIn(status: string): number | undefined {
  const [, voluntary] = /^voluntary_ctxt_switches:\s*(\d+)\n/m.exec(status) ?? []
  const [, others] = /^nonvoluntary_ctxt_switches:\s*(\d+)\n/m.exec(status) ?? []
  return voluntary === undefined || others === undefined ? undefined : Number(voluntary) + Number(others)
}

/** Of `/proc/<pid>/stat`, field 22 (proc_pid_stat(5)): kernel ticks from boot to the start of the process. */
export function startTicksIn(stat: string): number | undefined {
  const [ticks, next] = fieldsBehindCommand(stat).slice(19)
  // A number with nothing behind it may be the beginning of a longer one.
  return ticks !== undefined && next !== undefined && /^\d+$/.test(ticks) ? Number(ticks) : undefined
}

/** Of `/proc/<pid>/stat`, field 3: it has ended and only waits for its parent to hear of it, `Z`, or `X`. */
export function hasEnded(stat: string): boolean | undefined {
  const [state] = fieldsBehindCommand(stat)
  return state === undefined || !/^[A-Za-z]$/.test(state) ? undefined : /^[ZX]$/.test(state)
}

/** Of `/proc/sys/kernel/random/boot_id`: the id of the running kernel. */
export function bootIdIn(text: string): string | undefined {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.exec(text.trim())?.[0]
}

/** Of the link `/proc/self/ns/pid`: the inode of the pid namespace. */
export function pidNamespaceIn(link: string): string | undefined {
  return /^pid:\[(\d+)\]$/.exec(link)?.[1]
}

/** The fields of a stat from the third on: the second, the command, may itself hold spaces and brackets. */
function fieldsBehindCommand(stat: string): string[] {
  const at = stat.lastIndexOf(') ')
  return at < 0 ? [] : stat.slice(at + 2).split(' ')
}
