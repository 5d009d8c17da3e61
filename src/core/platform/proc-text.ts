/**
 * The texts of `/proc`. Reading them can race with the end of a process: the text is then empty, torn or shorter. A
 * value that a text lacks is undefined, and permits no conclusion. Pure.
 */

/**
 * From `/proc/<pid>/status`, field `VmRSS` (proc_pid_status(5)): bytes in memory. A zombie has none left, and no such
 * field.
 */
export function residentBytesIn(status: string): number | undefined {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(status) ?? []
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024
}

/** From `/proc/<pid>/task/<tid>/status`: how often the thread gave up its processor, or had to. */
export function switchesIn(status: string): number | undefined {
  const [, voluntary] = /^voluntary_ctxt_switches:\s*(\d+)\n/m.exec(status) ?? []
  const [, others] = /^nonvoluntary_ctxt_switches:\s*(\d+)\n/m.exec(status) ?? []
  return voluntary === undefined || others === undefined ? undefined : Number(voluntary) + Number(others)
}

/** From `/proc/<pid>/stat`, field 22 (proc_pid_stat(5)): kernel ticks from boot to the start of the process. */
export function startTicksIn(stat: string): number | undefined {
  const [ticks, next] = fieldsBehindCommand(stat).slice(19)
  // A number with nothing after it may be the beginning of a longer one.
  return ticks !== undefined && next !== undefined && /^\d+$/.test(ticks) ? Number(ticks) : undefined
}

/**
 * From `/proc/<pid>/stat`, field 3: `Z` or `X` means that the process has ended and waits to be reaped by its parent.
 */
export function hasEnded(stat: string): boolean | undefined {
  const [state] = fieldsBehindCommand(stat)
  return state === undefined || !/^[A-Za-z]$/.test(state) ? undefined : /^[ZX]$/.test(state)
}

/** From `/proc/<pid>/stat`, field 4: its parent. */
export function parentIn(stat: string): number | undefined {
  const [, parent = '', next] = fieldsBehindCommand(stat)
  return next !== undefined && /^\d+$/.test(parent) ? Number(parent) : undefined
}

/** From `/proc/<pid>/stat`, fields 5 and 6: its process group and its session. */
export function groupIn(stat: string): { readonly group: number; readonly session: number } | undefined {
  const [, , group = '', session = '', next] = fieldsBehindCommand(stat)
  if (next === undefined || !/^\d+$/.test(group) || !/^\d+$/.test(session)) return undefined
  return { group: Number(group), session: Number(session) }
}

/** From `/proc/<pid>/environ`: the value of a variable that the process was started with. */
export function variableIn(environ: string, name: string): string | undefined {
  const [found] = environ.split('\0').filter((entry) => entry.startsWith(`${name}=`))
  return found?.slice(name.length + 1)
}

/** From `/proc/sys/kernel/random/boot_id`: the id of the running kernel. */
export function bootIdIn(text: string): string | undefined {
  return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/.exec(text.trim())?.[0]
}

/** From the link `/proc/self/ns/pid`: the inode of the pid namespace. */
export function pidNamespaceIn(link: string): string | undefined {
  return /^pid:\[(\d+)\]$/.exec(link)?.[1]
}

/** The fields of a stat from the third on. The second, the command, may itself contain spaces and brackets. */
function fieldsBehindCommand(stat: string): string[] {
  const at = stat.lastIndexOf(') ')
  return at < 0 ? [] : stat.slice(at + 2).split(' ')
}
