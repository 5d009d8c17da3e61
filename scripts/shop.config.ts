/** The options of the shop in the screenshots; MILLRACE_STORE says where its jobs are. */

export { shop as default } from '../test/page/shop-tasks.js'
