/** The pages of jobs, in one file of code that is loaded when the first of them is shown. */

export { JobPage } from './job/job-page.js'
export { JobListPage } from './jobs/job-list-page.js'
export { SearchPage } from './search-page.js'
