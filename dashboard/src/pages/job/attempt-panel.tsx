/** The attempt panel: how often a job has run and may still fail, its last error with its stack, and the delays to come. */

import { failuresOf } from '../../api/answers.js'
import { Moment } from '../../parts/moment-text.js'
import { CopyButton } from '../../parts/name-text.js'
import { Panel } from '../../parts/page-head.js'
import { countOf } from '../../words/count-words.js'
import { durationWords } from '../../words/duration-words.js'
import { safeLines, safeText } from '../../words/safe-text.js'
import { hasEnded, type JobDetail, type RetryDelay } from './job-detail.js'

export function AttemptPanel({ job }: { readonly job: JobDetail }) {
  const { attempt, retry, error, state } = job
  return (
    <Panel title="Attempts">
      <p>
        {attemptWords(job)}
        {crashWords(job)}
      </p>
      {error !== undefined && <ErrorText error={error} isOfDead={state === 'dead'} />}
      <FailureTable job={job} />
      {retry !== undefined && !hasEnded(state) && retry.delays.length > 0 && (
        <Delays attempt={attempt} delays={retry.delays} />
      )}
      {retry === undefined && (
        <p class="text-sm text-muted">This mill does not declare the task, so it cannot tell how often it may fail.</p>
      )}
    </Panel>
  )
}

function attemptWords(job: JobDetail): string {
  const { attempt, retry, state } = job
  const most = retry && retry.max + 1
  if (state === 'dead') {
    const failures = failuresOf(job)
    const failed = failures === 0 ? 'No attempt has failed' : `${countOf(failures, 'attempt')} failed`
    return `${failed}${most === undefined ? '' : `; its task allows ${most}`}.`
  }
  const isLast = most !== undefined && attempt >= most && !hasEnded(state)
  return `Attempt ${attempt}${most === undefined ? '' : ` of at most ${most}`}${isLast ? ': the last one' : ''}.`
}

function crashWords({ crashes, suspect }: JobDetail): string {
  const charged = crashes === 0 ? '' : ` ${countOf(crashes, 'crash', 'crashes')} charged to it.`
  return suspect ? `${charged} Its worker died with it in hand, so it must run alone in a process.` : charged
}

interface ErrorProps {
  readonly error: string
  readonly isOfDead: boolean
}

function ErrorText({ error, isOfDead }: ErrorProps) {
  const [first = '', ...stack] = error.split('\n')
  return (
    <div class="grid gap-1.5 rounded-md bg-bad-wash p-2.5">
      <div class="flex items-start justify-between gap-2">
        <p class="wrap-anywhere">
          <span class="text-sm text-muted">{isOfDead ? 'Died of: ' : 'Last failure: '}</span>
          <span class="font-medium text-bad">{safeText(first)}</span>
        </p>
        <CopyButton text={error} what="the error" />
      </div>
      {stack.length > 0 && (
        <details>
          <summary class="text-sm text-muted">Stack</summary>
          <pre class="mt-1 max-h-80 overflow-auto font-mono text-sm whitespace-pre-wrap wrap-anywhere">
            {safeLines(stack.join('\n'))}
          </pre>
        </details>
      )}
    </div>
  )
}

/** The failed attempts that are kept, newest first. One alone says no more than the error above. */
function FailureTable({ job: { failures = [] } }: { readonly job: JobDetail }) {
  if (failures.length < 2) return null
  return (
    <table class="w-full text-sm" aria-label="Failed attempts">
      <thead class="text-xs text-muted">
        <tr>
          <th scope="col" class="w-18 py-1 text-start font-medium">
            Attempt
          </th>
          <th scope="col" class="w-24 py-1 text-start font-medium">
            Failed
          </th>
          <th scope="col" class="py-1 text-start font-medium">
            Error
          </th>
        </tr>
      </thead>
      <tbody>
        {failures.toReversed().map(({ attempt, at, error }) => (
          <tr key={`${attempt} ${at}`} class="border-t border-line align-top">
            <td class="py-1.5">{attempt}</td>
            <td class="py-1.5">
              <Moment at={at} />
            </td>
            <td class="py-1.5 wrap-anywhere">
              <FailureText error={error} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function FailureText({ error }: { readonly error: string }) {
  const [first = '', ...rest] = error.split('\n')
  if (rest.length === 0) return <>{safeText(first)}</>
  return (
    <details>
      <summary>{safeText(first)}</summary>
      <pre class="mt-1 max-h-40 overflow-auto font-mono whitespace-pre-wrap wrap-anywhere text-muted">
        {safeLines(rest.join('\n'))}
      </pre>
    </details>
  )
}

function Delays({ attempt, delays }: { readonly attempt: number; readonly delays: readonly RetryDelay[] }) {
  return (
    <details>
      <summary class="text-sm text-muted">Delays after failures to come</summary>
      <ol class="mt-1 grid gap-0.5 text-sm">
        {delays.map((delay, i) => (
          <li key={attempt + i} class="flex gap-3">
            <span class="w-24 text-muted">attempt {attempt + i}</span>
            <span>{delayWords(delay)}</span>
          </li>
        ))}
        <li class="text-muted">then the morgue, after the last</li>
      </ol>
    </details>
  )
}

function delayWords({ leastMs, mostMs }: RetryDelay): string {
  if (mostMs - leastMs < 1) return durationWords(leastMs)
  return leastMs < 1 ? `up to ${durationWords(mostMs)}` : `${durationWords(leastMs)} to ${durationWords(mostMs)}`
}
