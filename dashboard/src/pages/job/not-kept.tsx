/** The page of a job that is not kept: why that is no fault, and where to look instead. */

import { at, queryText } from '../../api/api-path.js'
import type { JobName } from '../../api/job-address.js'
import { Name } from '../../parts/name-text.js'
import { Button } from '../../parts/press-button.js'

interface NotKeptProps {
  readonly name: JobName
  readonly onLook: () => unknown
}

export function NotKept({ name: { queue, id, part }, onLook }: NotKeptProps) {
  return (
    <div class="panel grid max-w-prose gap-3 p-5">
      <h2 class="text-lg font-semibold">
        {part === 'morgue' ? 'No such job lies in the morgue' : 'Nothing is kept of this job'}
      </h2>
      <p class="wrap-anywhere text-muted">
        {part === 'morgue' ? 'It was revived or deleted, or never died.' : whyWords} It was looked for in the queue{' '}
        <Name text={queue} />.
      </p>
      <ul class="grid list-disc gap-1 ps-5">
        <li>
          <a class="link" href={`search${queryText({ q: id })}`}>
            Look for this id in all queues
          </a>
        </li>
        <li>
          <a class="link" href={at`queues/${queue}/jobs`}>
            Jobs of this queue
          </a>
        </li>
        <li>
          <a class="link" href={at`queues/${queue}/morgue`}>
            Its morgue
          </a>
        </li>
      </ul>
      <div>
        <Button onPress={onLook}>Look again</Button>
      </div>
    </div>
  )
}

const whyWords =
  'It ended and its result is not kept, or not any more: a queue says by its retention how many results it keeps, and for how long. Or it was deleted, or never enqueued.'
