/**
 * The environment of a process that runs an isolated job: the variables that it needs to find its task and its store,
 * and those that its task names. Pure.
 */

const passed = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|NODE_\w+|MILLRACE_\w+|OTEL_\w+)$/

/** Variables that give a process its devices, as drivers of several makers read them. */
export const deviceVariable = /^(?:\w+_VISIBLE_DEVICES|ZE_AFFINITY_MASK)$/

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
