/** The findings of an fsck of a Redis store: the number of breaches of each kind, their ids, and the harm they do. */

import type { FsckFinding } from '../../contract/store-health.js'

/** A kind of breach in a key. */
interface BreachKind {
  readonly level: 'warning' | 'error'
  /** What is wrong; ids follow. */
  readonly wrong: string
  readonly harm: string
}

const neverRuns = 'They never run. Enqueue them again.'
const runsTwice = 'What does not belong there may be run twice, or hold up claims on this queue.'
const claimsFail = 'Claims on this queue fail when they meet it.'
const settlesFail = 'Settles on this queue fail when they come to remove it.'
const fillsMemory = 'Nothing but memory is lost.'

const error = (wrong: string, harm: string): BreachKind => ({ level: 'error', wrong, harm })
const warning = (wrong: string, harm: string): BreachKind => ({ level: 'warning', wrong, harm })

const jobless: Readonly<Record<string, string>> = {
  ready: claimsFail,
  lanes: claimsFail,
  suspects: claimsFail,
  scheduled: claimsFail,
  leases: claimsFail,
  completed: settlesFail,
  expiry: settlesFail,
  dead: settlesFail,
  payloads: 'Others of that id would find them among their own.',
  successors: 'A claim of that id would bring them back.',
  retries: 'Actions on all failed jobs fail when they meet it.',
  claims: 'A new job of that id would count as running.',
  history: 'A new job of that id would never run.',
  steps: 'A new job of that id would find them.',
}

const kinds: Readonly<Record<string, (key: string) => BreachKind>> = {
  unreadable: (key) =>
    error(`what '${key}' holds of them cannot be read`, 'It is damaged, or not ours; whatever meets it fails.'),
  placeless: (key) => {
    const wrong = `missing from '${key}'`
    if (key === 'leases') return error(wrong, 'If their worker dies, nobody takes them back.')
    if (key === 'dead' || key === 'completed') return error(wrong, 'They are not listed, and never removed.')
    if (key === 'grouped') return error(wrong, 'Lists leave them out, and lag does not count them.')
    return error(wrong, neverRuns)
  },
  turnless: (key) =>
    error(`groups whose jobs in '${key}' have no turn`, 'They wait until one of them arrives or leaves.'),
  uncounted: (key) =>
    key === 'payloads'
      ? error(
          "'meta' counts the waiting payloads wrongly",
          'Depth is wrong, and `maxPending` holds too early or too late.',
        )
      : error(`they run, and '${key}' counts none of their group`, 'More of the group may run than its limit allows.'),
  misplaced: (key) => {
    const wrong = `stand in '${key}', where they do not belong`
    if (key === 'leases') return error(wrong, 'Claims on this queue fail when they come to end that lease.')
    if (key === 'retries') return warning(wrong, 'Counts of failed jobs are too high.')
    if (key === 'dead' || key === 'completed' || key === 'expiry' || key === 'expiring')
      return error(wrong, 'They may be removed, although they must be kept or run.')
    return error(wrong, runsTwice)
  },
  jobless: (key) => {
    const wrong = `stand in '${key}' without a job`
    return jobless[key] === undefined ? warning(wrong, fillsMemory) : error(wrong, jobless[key])
  },
  unlisted: (key) => {
    const wrong = `missing from '${key}'`
    if (key === 'payloads' || key === 'dead-payloads')
      return error(`payloads of them are ${wrong}`, 'They are never handed over.')
    return key === 'retries'
      ? warning(wrong, 'Lists and counts of failed jobs leave them out.')
      : warning(wrong, 'They are remembered for ever; nothing but memory is lost.')
  },
  bodiless: (key) =>
    error(`payloads in '${key}' whose bodies are missing`, 'Claims on this queue fail when they meet them.'),
  payloadless: (key) =>
    error(`have no payloads in '${key}'`, 'A claim or a revive of them fails, or finds nothing to do.'),
  uneven: (key) => error(`'${key}' and its companions differ in number`, 'Something is missing, or left over.'),
  ahead: (key) =>
    key === 'claims'
      ? error('their fences are higher than the last that was given', 'It is given again: a lost lease could settle.')
      : error('their sequence numbers are higher than the last that was given', 'Others are given the same.'),
  misflagged: () => error('their claims do not say what is stored for them', 'Some of it stays when they end.'),
  miscounted: () =>
    error(
      'claims of these fences share a lease that counts others',
      'It may end too soon, or hold up claims on this queue.',
    ),
  leaseless: () => warning('shared leases of these fences are not there any more', fillsMemory),
  resultless: () => error('completed, and their kept results are missing', 'A caller that asks for them finds none.'),
  joinless: () =>
    error(
      'are joins, but the store does not say for which jobs they wait',
      'They wait for ever. Delete them, and enqueue them again.',
    ),
  signalless: () =>
    error(
      'wait for a signal, but the store does not say which',
      'They wait for ever. Run fsck --repair, which makes them ready.',
    ),
  untimed: () =>
    error(
      'wait for a signal, and nobody will notice when their time is over',
      'They wait until it comes. Run fsck --repair.',
    ),
  unmarked: () =>
    error(
      'have steps or signals, but are marked as having none',
      'Their handlers do the steps again. Run fsck --repair.',
    ),
  inputless: () =>
    warning('were cancelled after they had begun, and their inputs are missing', 'Their records show less.'),
  remembered: () =>
    warning('they live, but are remembered as ended', 'A caller that waits for one may believe that it has ended.'),
  stranded: () =>
    warning(
      'some jobs have left for other shards and have not arrived: who moved them is gone',
      'Nobody runs them. The next claim on this queue brings them on, and after a move a worker of any queue; if there is none, start the command again.',
    ),
  foreign: (key) => warning(`fields of '${key}' that are not ours`, fillsMemory),
  scored: (key) => error(`have a score other than 0 in '${key}'`, 'The order of that set is lost.'),
  disordered: (key) => error(`come out of order in '${key}'`, 'Jobs run out of order, and lists leave some out.'),
  overcounted: (key) =>
    error(`'${key}' is shorter than the number of its stale elements, which 'meta' counts`, 'Claims find no jobs.'),
  overgrown: (key) =>
    warning(`'${key}' and 'call-order' hold more than 10,000 calls, and were not looked at`, fillsMemory),
}

/** The most ids of a kind to tell apart. */
const mostIds = 10_000
const shownIds = 3

export class RedisBreaches {
  readonly #found = new Map<string, { readonly kind: BreachKind; readonly ids: Set<string> }>()

  /** The same breach may be added several times. */
  add(word: string, key: string, id: string): void {
    const name = `${word} ${key}`
    const one = this.#found.get(name) ?? { kind: kinds[word]!(key), ids: new Set() }
    if (one.ids.size <= mostIds) one.ids.add(id)
    this.#found.set(name, one)
  }

  get isEmpty(): boolean {
    return this.#found.size === 0
  }

  has(word: string, key: string): boolean {
    return this.#found.has(`${word} ${key}`)
  }

  /** One finding for each kind, errors first. */
  findings(what: string): FsckFinding[] {
    const found = [...this.#found.values()].sort((a, b) => (a.kind.level < b.kind.level ? -1 : 1))
    return found.map(({ kind: { level, wrong, harm }, ids }) => ({
      level,
      what,
      text: `${wrong}${listed([...ids])}. ${harm}`,
    }))
  }
}

function listed(ids: readonly string[]): string {
  const named = ids.filter((id) => id !== '')
  if (named.length === 0) return ''
  const more = named.length > mostIds ? `more than ${mostIds} others` : `${named.length - shownIds} more`
  return `: ${named.slice(0, shownIds).join(', ')}${named.length > shownIds ? ` and ${more}` : ''}`
}
