/** `millrace/testing`: tools for the tests of an application. It starts no worker, no thread and no process. */

export type { RanJob } from './drainer.js'
export type { StoreVerb } from './store-failures.js'
export {
  type GivenBatch,
  type GivenJob,
  type GivenJoin,
  type GivenOrdered,
  type TestBatchContext,
  type TestContext,
  type TestOrderedContext,
  testContext,
} from './test-context.js'
export { type TestMill, type TestMillOptions, testMill, type WaitingJob, type WhatToDrain } from './test-mill.js'
