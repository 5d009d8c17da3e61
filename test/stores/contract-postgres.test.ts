import { contractOf } from './contract-of.js'

contractOf('postgres')
