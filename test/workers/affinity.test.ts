import { expect, it } from 'vitest'
import { affinityOf } from '#src/workers/isolated/child-environment.js'

it('a worker without a declared affinity takes that of the devices in its environment, in any order', () => {
  expect(affinityOf({ PATH: '/bin', HIP_VISIBLE_DEVICES: '1', CUDA_VISIBLE_DEVICES: '0,2' })).toBe(
    'CUDA_VISIBLE_DEVICES=0,2 HIP_VISIBLE_DEVICES=1',
  )
  expect(affinityOf({ CUDA_VISIBLE_DEVICES: '0' })).not.toBe(affinityOf({ CUDA_VISIBLE_DEVICES: '1' }))
  expect(affinityOf({ PATH: '/bin', INVOCATION_ID: 'f3', CUDA_VISIBLE_DEVICES: undefined })).toBe('')
})
