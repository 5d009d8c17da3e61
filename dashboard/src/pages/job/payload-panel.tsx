/**
 * The payload panel: the values of a job: input, meta, result, checkpoint; for an ordered job its payloads by score.
 */

import { JsonView } from '../../parts/json-view.js'
import { Panel } from '../../parts/page-head.js'
import { countOf } from '../../words/count-words.js'
import { isOrdered, type JobDetail } from './job-detail.js'

const parts = ['input', 'meta', 'result', 'checkpoint'] as const

export function PayloadPanel({ job }: { readonly job: JobDetail }) {
  if (job.payloadsHidden) return <HiddenPayloads job={job} />
  const shown = parts.filter((part) => job[part] !== undefined)
  return (
    <>
      {isOrdered(job) && <OrderedPayloads job={job} />}
      {shown.map((part) => (
        <Panel key={part} title={titles[part]}>
          <JsonView value={job[part]} label={part} />
        </Panel>
      ))}
      {shown.length === 0 && !isOrdered(job) && (
        <Panel title="Input">
          <p class="text-muted">
            {job.state === 'completed' || job.state === 'cancelled'
              ? 'It has no input, or only its end is remembered.'
              : 'It has no input.'}
          </p>
        </Panel>
      )}
    </>
  )
}

const titles = { input: 'Input', meta: 'Meta', result: 'Result', checkpoint: 'Checkpoint' } as const

function HiddenPayloads({ job }: { readonly job: JobDetail }) {
  return (
    <Panel title="Input and result">
      <p class="text-muted">
        This dashboard hides what jobs carry: its option <code>hidePayloads</code> leaves out inputs, metas, results and
        checkpoints. They are as they were, and <code>millrace jobs show</code> shows them where the mill is configured.
      </p>
      {job.payloads !== undefined && <p>{scoresWords(job)}</p>}
    </Panel>
  )
}

function scoresWords({ payloads = [], payloadCount = payloads.length }: JobDetail): string {
  const scores = payloads.slice(0, 20).map(({ score }) => score)
  return `${countOf(payloadCount, 'payload')}, by score: ${scores.join(', ')}${payloadCount > scores.length ? ' …' : ''}`
}

const mostPayloads = 100

function OrderedPayloads({
  job: { payloads = [], payloadCount = payloads.length, pendingCount = 0 },
}: {
  readonly job: JobDetail
}) {
  const shown = payloads.slice(0, mostPayloads)
  return (
    <Panel
      title="Payloads by score"
      aside={
        <span class="text-sm text-muted">
          {countOf(payloadCount, 'payload')}
          {pendingCount > 0 && `, ${countOf(pendingCount, 'more', 'more')} waiting beside the run`}
        </span>
      }
    >
      <ol class="grid gap-2.5">
        {shown.map(({ score, input, meta }, i) => (
          // Two payloads may be equal in every part.
          <li key={i} class="grid gap-1">
            <span class="text-sm text-muted">score {score}</span>
            <JsonView value={input ?? null} label={`payload ${i + 1}`} />
            {meta !== undefined && <JsonView value={meta} label={`meta of payload ${i + 1}`} />}
          </li>
        ))}
      </ol>
      {payloadCount > shown.length && <p class="text-sm text-muted">The first {shown.length} are shown, old to new.</p>}
    </Panel>
  )
}
