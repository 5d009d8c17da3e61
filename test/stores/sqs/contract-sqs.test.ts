import { contractOn } from '../contract-of.js'
import { sqsHarness } from './sqs-harness.js'

contractOn('sqs', sqsHarness)
