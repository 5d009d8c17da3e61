/** The followed log: the log of a job as far as this page has seen it, with a mark wherever lines are missing. Pure. */

interface FollowedLog {
  readonly text: string
  /** Whether the next text is the whole log again, as after a break of the stream. */
  readonly isStale: boolean
}

export interface LogNews {
  readonly text: string
  /** Lines between this text and the one before were never seen. */
  readonly isGap: boolean
}

export const emptyLog: FollowedLog = { text: '', isStale: true }
export const gapLine = '⋯ lines are missing here ⋯'
/** The store keeps the last 64 KiB; a page that follows the log shows more, up to this. */
const mostSigns = 262_144

export function withNews(log: FollowedLog, { text, isGap }: LogNews): FollowedLog {
  if (log.isStale) return { text, isStale: false }
  const whole = `${log.text}${isGap ? `${gapLine}\n` : ''}${text}`
  if (whole.length <= mostSigns) return { text: whole, isStale: false }
  const end = whole.slice(-mostSigns)
  return { text: end.slice(end.indexOf('\n') + 1), isStale: false }
}

/** The lines that contain the text, ignoring case, and their total number. */
export function linesWith(text: string, wanted: string): { readonly lines: readonly string[]; readonly all: number } {
  const all = text === '' ? [] : text.replace(/\n$/, '').split('\n')
  const sought = wanted.toLowerCase()
  return { lines: sought === '' ? all : all.filter((line) => line.toLowerCase().includes(sought)), all: all.length }
}
