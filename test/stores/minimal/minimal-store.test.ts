import { contractOn } from '../contract-of.js'
import { minimalHarness } from './minimal-harness.js'

contractOn('minimal', minimalHarness)
