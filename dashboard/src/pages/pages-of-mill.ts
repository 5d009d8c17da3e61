/**
 * The pages of the whole mill except the overview, in one file of code that is loaded when the first of them is shown.
 */

export { MorguesPage } from './morgue/morgues-page.js'
export { SchedulesPage } from './schedules/schedules-page.js'
export { ThrottlesPage } from './throttles-page.js'
export { WorkersPage } from './workers-page.js'
