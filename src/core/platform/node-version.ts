/** The version of Node that runs this: one that is too old is refused in words, not by the first thing that it lacks. */

/** As `engines` of package.json has it. */
const oldest = [20, 19] as const

/** Throws if `version`, as in `process.versions.node`, is older than what Millrace runs on. */
export function refuseOldNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > oldest[0] || (major === oldest[0] && minor >= oldest[1])) return
  throw new Error(`Millrace needs Node ${oldest.join('.')} or newer; this is Node ${version}.`)
}

refuseOldNode(process.versions.node)
