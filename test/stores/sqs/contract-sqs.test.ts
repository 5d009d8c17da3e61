import { contractOn } from '../contract-of.js'
import { sqsFifoHarness, sqsHarness } from './sqs-harness.js'

contractOn('sqs', sqsHarness)
contractOn('sqs-fifo', sqsFifoHarness)
