/** The check of the Node version: one that is too old is refused with a clear error before anything else fails. */

/** The minimum in `engines` of package.json. */
const oldest = [20, 19] as const

/** Throws if `version`, as in `process.versions.node`, is older than the minimum of Millrace. */
export function refuseOldNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return
  throw new Error(`Millrace needs Node ${oldest.join('.')} or newer; this is Node ${version}.`)
}

refuseOldNode(process.versions.node)
