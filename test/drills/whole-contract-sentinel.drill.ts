import { contractOf } from '../stores/contract-of.js'

contractOf('redis-sentinel')
