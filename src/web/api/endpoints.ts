/** All endpoints of the API, in the order of their description. If two match an address the first is used. */

import type { Endpoint } from './endpoint.js'
import { enqueueEndpoints } from './enqueue-endpoint.js'
import { holdEndpoints } from './hold-endpoints.js'
import { jobEndpoints } from './job-endpoints.js'
import { morgueEndpoints } from './morgue-endpoints.js'
import { overviewEndpoints } from './overview-endpoints.js'
import { queueEndpoints } from './queue-endpoints.js'
import { scheduleEndpoints } from './schedule-endpoints.js'
import { sessionEndpoints } from './session-endpoints.js'
import { workerEndpoints } from './worker-endpoints.js'

export const endpoints: readonly Endpoint[] = [
  ...sessionEndpoints,
  ...overviewEndpoints,
  ...queueEndpoints,
  ...holdEndpoints,
  ...enqueueEndpoints,
  ...jobEndpoints,
  ...morgueEndpoints,
  ...workerEndpoints,
  ...scheduleEndpoints,
]
