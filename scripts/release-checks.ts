/** The checks of a release that only read: what must be true before a version is published, and what a person is told. Pure. */

/** What git says of the working tree. */
export interface TreeLook {
  /** The lines of `git status --porcelain`. */
  readonly status: string
  readonly branch: string
  /** The tags of this name that exist. */
  readonly tags: string
}

export function treeProblems({ status, branch, tags }: TreeLook, version: string): string[] {
  return [
    ...(status === '' ? [] : ['the working tree has changes that are not committed']),
    ...(branch === 'main' ? [] : [`the branch is '${branch}', not main`]),
    ...(tags === '' ? [] : [`the tag v${version} exists; raise the version in package.json`]),
  ]
}

export function changelogProblems(changelog: string, version: string): string[] {
  const heading = new RegExp(`^## ${version.replaceAll('.', '\\.')} — \\d{4}-\\d{2}-\\d{2}$`, 'm')
  return heading.test(changelog) ? [] : [`CHANGELOG.md has no heading "## ${version} — <date>"`]
}

/**
 * `files`: those in the folder of this version's fixture stores; `expected`: those that it must have. `changes`: the commits
 * since they were written that changed a store.
 */
export function fixtureProblems(
  files: readonly string[],
  expected: readonly string[],
  version: string,
  changes: readonly string[],
): string[] {
  const missing = expected.filter((file) => !files.includes(file))
  if (missing.length > 0)
    return [
      `there are no fixture stores of ${version} (${missing.join(', ')}): run \`npm run fixtures\` and commit them`,
    ]
  if (changes.length === 0) return []
  return [
    `the stores have changed since their fixtures of ${version} were written (${changes.length} commits, the latest ${changes[0]}): run \`npm run fixtures\` and commit them`,
  ]
}

/** The output of a proof, as its file has it. */
export interface ProofOutput {
  readonly file: string
  readonly name: string
  readonly commit: string
  /** ISO-8601, with the time. */
  readonly date: string
  readonly allHold: boolean
}

export function proofOutput(file: string, text: string): ProofOutput {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? 'unknown'
  return {
    file,
    name: field('proof'),
    commit: field('commit'),
    date: field('date'),
    allHold: /^Every claim holds\.$/m.test(text),
  }
}

/** A proof that no longer says what it said, and why. */
export interface StaleProof {
  readonly name: string
  /** The file of its output; undefined: it has none. */
  readonly file: string | undefined
  readonly date: string
  readonly why: string
  /** How many commits have changed what it proves. */
  readonly commits: number
}

/** The commits that changed some paths after the one of an output; after its date if that one is not in the history. */
export interface ChangesSince {
  readonly commits: readonly string[]
  readonly isByDate: boolean
}

/**
 * `proved`: by the name of each proof, what it proves. `changesSince`: what has changed these paths since the output. A proof is
 * stale if something has, if a claim of it failed, if nobody can run again what it ran on (`-dirty`), or if it has no output.
 * Those with the most changes come first.
 */
export function staleProofs(
  outputs: readonly ProofOutput[],
  proved: ReadonlyMap<string, readonly string[]>,
  changesSince: (output: ProofOutput, paths: readonly string[]) => ChangesSince,
): StaleProof[] {
  const withOutput = new Set(outputs.map(({ name }) => name))
  const never = [...proved.keys()]
    .filter((name) => !withOutput.has(name))
    .map((name) => ({ name, file: undefined, date: 'never', why: 'its output is not kept', commits: 0 }))
  const found = outputs.flatMap((output): StaleProof[] => {
    const { file, name, commit, date, allHold } = output
    const stale = (why: string, commits = 0) => [{ name, file, date: date.slice(0, 10), why, commits }]
    const paths = proved.get(name)
    if (paths === undefined) return stale(`there is no proof '${name}'`)
    if (!allHold) return stale('a claim of it failed')
    if (commit.endsWith('-dirty')) return stale('it ran on changes that were not committed')
    const { commits, isByDate } = changesSince(output, paths)
    const by = isByDate ? ', by its date' : ''
    return commits.length === 0 ? [] : stale(`${counted(commits.length)} since in what it proves${by}`, commits.length)
  })
  return [...found, ...never].sort((a, b) => b.commits - a.commits || (a.name < b.name ? -1 : 1))
}

const counted = (n: number) => (n === 1 ? '1 commit' : `${n} commits`)

/** A line for each, with the command that renews it. */
export function staleTable(stale: readonly StaleProof[]): string[] {
  const rows = stale.map(({ name, file, date, why }) => [file ?? name, date, why, `npm run prove ${name}`])
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)))
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** What no machine does: before a version is published, and after it. */
export function leftToAPerson(version: string, isPublished: boolean): string[] {
  return isPublished
    ? [
        `push the tag: git push origin v${version}`,
        'publish the site: npm run site',
        `raise the version in package.json, and begin its heading "unreleased" in CHANGELOG.md`,
      ]
    : [
        'read api/ against the last tag: does the version say what has changed? (docs/versions.md)',
        'renew the proofs above that the changes concern',
        'read CHANGELOG.md as someone who upgrades',
        `publish: npm run release -- --publish`,
      ]
}
