/** The pages of one queue, in one file of code that is loaded when the first of them is shown. */

export { MorguePage } from './morgue/morgue-page.js'
export { QueueEventsPage } from './queue/queue-events-page.js'
export { QueuePage } from './queue/queue-page.js'
