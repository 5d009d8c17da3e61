/** The wait reasons: why a job, or the first of a queue's jobs, has not begun. */

import type { WaitReason } from '../api/answers.js'
import { jobAddress } from '../api/api-path.js'
import { Name } from '../parts/name-text.js'
import { safeText } from '../words/safe-text.js'

interface WaitReasonsProps {
  readonly title: string
  readonly waits: readonly WaitReason[] | undefined
}

/** Nothing if there are none. The first is the most decisive. */
export function WaitReasons({ title, waits = [] }: WaitReasonsProps) {
  const [first] = waits
  if (first === undefined) return null
  return (
    <section
      class={`grid gap-1 rounded-md p-3 ${first.standing ? 'bg-warn-wash text-warn' : 'panel'}`}
      aria-label={title}
    >
      <h2 class="text-sm font-medium">{title}</h2>
      <ul class="grid gap-1">
        {waits.map(({ why, text, jobs = [] }) => (
          <li key={why + text} class="wrap-anywhere">
            {codeIn(safeText(text))}
            {jobs.length > 0 && ': '}
            {jobs.map((job, i) => (
              <span key={`${job.queue}/${job.id}`}>
                {i > 0 && ', '}
                <a class="link" href={jobAddress(job)}>
                  <Name text={job.id} most={32} isId />
                </a>
              </span>
            ))}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The text, with what stands between backticks as code. */
function codeIn(text: string) {
  return text.split('`').map((part, i) => (i % 2 === 0 ? part : <code key={part}>{part}</code>))
}
