/** The live job: its record and its log, live, until it has ended. */

import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get } from '../../api/api-client.js'
import { ApiError } from '../../api/api-error.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { openStream } from '../../api/live-stream.js'
import { type Resource, useResource } from '../../state/resource.js'
import { emptyLog, type LogNews, withNews } from './followed-log.js'
import { hasEnded, type JobDetail } from './job-detail.js'

interface LiveJob {
  readonly detail: Resource<JobDetail>
  readonly log: ReadonlySignal<string>
  /** Nothing of it is kept, or not any more. */
  readonly isGone: ReadonlySignal<boolean>
  /** It ended while this page was open. */
  readonly endedHere: ReadonlySignal<boolean>
}

const waitsEveryMs = 3_000

/** For another name, use another component: this one does not follow a change. */
export function useLiveJob(name: JobName): LiveJob {
  const detail = useResource<JobDetail>((signal) => get(jobAddress(name), { signal }), [])
  const seen = useSignal(emptyLog)
  const endedHere = useSignal(false)
  const state = detail.data.value?.state
  const isLive = name.part !== 'morgue' && state !== undefined && !hasEnded(state)
  useEffect(() => {
    if (!isLive) return
    seen.value = emptyLog
    return openStream(jobAddress(name, '/events'), {
      on: {
        // The stream does not report things around the job, such as its relatives.
        job: (job: JobDetail) => {
          const known = detail.data.value
          detail.set(withExtras(job, known))
          if (hasEnded(job.state)) endedHere.value = true
          if (job.state !== known?.state) void detail.refresh()
        },
        log: (news: LogNews) => {
          seen.value = withNews(seen.value, news)
        },
        end: () => {
          endedHere.value = true
          void detail.refresh()
        },
      },
      onAgain: () => {
        seen.value = { ...seen.value, isStale: true }
      },
    })
  }, [isLive])
  const mayWait = isLive && state !== 'running'
  // Why it waits changes with what is around it, of which the stream knows nothing.
  useEffect(() => {
    if (!mayWait) return
    const timer = setInterval(() => void detail.refresh(), waitsEveryMs)
    return () => clearInterval(timer)
  }, [mayWait])
  return {
    detail,
    log: useComputed(() => (seen.value.text === '' ? (detail.data.value?.log ?? '') : seen.value.text)),
    isGone: useComputed(() => detail.error.value instanceof ApiError && detail.error.value.code === 'job-unknown'),
    endedHere,
  }
}

/** The record from the stream, with the parts that only a direct request returns. */
function withExtras(job: JobDetail, known: JobDetail | undefined): JobDetail {
  if (known === undefined) return job
  const { parent, childCalls, children, retry, leaseMs, signals } = known
  const waits = job.state === known.state ? known.waits : undefined
  return Object.assign({}, job, { parent, childCalls, children, retry, leaseMs, signals, waits })
}
