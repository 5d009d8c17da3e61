import { contractOf } from './contract-of.js'

contractOf('sqs-fifo')
