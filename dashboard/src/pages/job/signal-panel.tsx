/** The signal panel: the signal that a job waits for, and a form that sends one; the schema of the signal checks it. */

import { useState } from 'preact/hooks'
import { mayChange, post } from '../../api/api-client.js'
import { messageOf } from '../../api/api-error.js'
import { type JobName, jobAddress } from '../../api/api-path.js'
import { Field, Select } from '../../parts/form-field.js'
import { Moment } from '../../parts/moment-text.js'
import { Name } from '../../parts/name-text.js'
import { Panel } from '../../parts/page-head.js'
import { Button } from '../../parts/press-button.js'
import { say } from '../../state/toast-list.js'
import { jsonIn } from '../queue/job-form.js'
import { hasEnded, type JobDetail } from './job-detail.js'

interface SignalProps {
  readonly job: JobDetail
  readonly name: JobName
  /** Whether nothing is kept of it any more. */
  readonly isGone: boolean
  readonly done: () => unknown
}

type SignalAnswer = 'delivered' | 'kept' | 'duplicate' | 'full' | 'gone'

const answers: Readonly<Record<SignalAnswer, readonly [words: string, kind?: 'failed']>> = {
  delivered: ['The job waited for it, and goes on.'],
  kept: ['It is kept until the job waits for it.'],
  duplicate: ['The job has this signal already, and the first one stays.', 'failed'],
  full: ['The job can keep no more signals.', 'failed'],
  gone: ['The job has completed or was cancelled, or its wait for this signal is over.', 'failed'],
}

export function SignalPanel({ job, name, isGone, done }: SignalProps) {
  const { awaits, updatedAt, signals = [], state } = job
  const maySend = mayChange.value && !isGone && signals.length > 0 && (!hasEnded(state) || state === 'dead')
  if (awaits === undefined && !maySend) return null
  return (
    <Panel title={awaits === undefined ? 'Signals' : 'Waits for a signal'}>
      {awaits !== undefined && (
        <p class="text-sm">
          <Name text={awaits.signal} /> <span class="text-muted">since</span> <Moment at={updatedAt} />
          {awaits.until !== undefined && (
            <>
              <span class="text-muted">, at most until</span> <Moment at={awaits.until} />
            </>
          )}
        </p>
      )}
      {maySend && <SignalForm name={name} signals={signals} awaited={awaits?.signal} done={done} />}
    </Panel>
  )
}

interface FormProps {
  readonly name: JobName
  readonly signals: readonly string[]
  readonly awaited: string | undefined
  readonly done: () => unknown
}

function SignalForm({ name, signals, awaited, done }: FormProps) {
  const [chosen, setChosen] = useState(awaited !== undefined && signals.includes(awaited) ? awaited : signals[0]!)
  const [text, setText] = useState('')
  const [mistake, setMistake] = useState<string>()
  const send = async () => {
    const { value: data, mistake: own } = jsonIn(text)
    setMistake(own)
    if (own !== undefined) return
    try {
      const body = { signal: chosen, ...(data !== undefined && { data }) }
      const { answer } = await post<{ readonly answer: SignalAnswer }>(jobAddress(name, '/signal'), body)
      say(...answers[answer])
      if (answer === 'delivered' || answer === 'kept') setText('')
      await done()
    } catch (error) {
      setMistake(messageOf(error))
    }
  }
  return (
    <form
      class="grid gap-3"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <Select label="Signal" value={chosen} choices={signals.map((one) => [one, one])} onChange={setChosen} />
      <Field label="Data" lines={3} isCode hint="JSON; empty: none" value={text} onInput={setText} mistake={mistake} />
      <div>
        <Button type="submit" kind="main">
          Send the signal
        </Button>
      </div>
    </form>
  )
}
