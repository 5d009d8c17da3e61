/** The pages of one queue, in one file of code that is loaded when the first of them is shown. */

export { QueueEventsPage } from './events/queue-events-page.js'
export { MorguePage } from './morgue/morgue-page.js'
export { QueuePage } from './queue/queue-page.js'
