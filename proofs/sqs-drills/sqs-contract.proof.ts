/**
 * Proof: the contract of stores on another SQS. Every case runs on standard and on FIFO queues of moto, a second
 * emulator, which Debian packages. A case in which moto differs from SQS is named, with the difference. With
 * `SQS_ENDPOINT` (and `SQS_REGION`, by default eu-central-1) the proof also runs on that service, with the credentials
 * of the environment. Its queues stay there.
 */

import { runContractCase, storeContract } from 'millrace/store-testing'
import { type SqsService, sqsHarnessOn } from '../../test/stores/sqs/sqs-harness.js'
import type { Report, Summary } from '../report.js'
import { motoService, namedService } from './other-services.js'

export const seed = 0

const small = 'moto takes 256 KiB a call, as SQS did until 2025; it takes 1 MiB'
const inPlace =
  'moto gives messages in the order of their sends, retried ones too; SQS promises none in a standard queue, nor between groups'
/** Cases that fail on moto, because it differs from SQS. */
const differences: ReadonlyMap<string, string> = new Map([
  ['a payload of the largest size is returned whole', small],
  ['payloads of bytes are weighed by their bytes', small],
  ['a retry with no delay goes behind the waiting jobs', inPlace],
])

const goesOn = 'it is about one and the same millisecond, and the clock of this service goes on'
/** Cases that need a clock which stands still between two calls. */
const ofStandingClocks: ReadonlyMap<string, string> = new Map(
  [
    'a claim without queues gets no job, only the time',
    'a claim that grants nothing names no queue',
    'a runAt is an absolute instant of the store’s clock',
    'now is the store’s clock',
    'a lease holds for its whole time and not a millisecond longer',
  ].map((title) => [title, goesOn]),
)

interface Outcome {
  readonly passed: number
  readonly skipped: ReadonlyMap<string, number>
  readonly failed: ReadonlyMap<string, string>
}

export async function prove(report: Report): Promise<Summary> {
  const moto = await motoService()
  const figures: Record<string, unknown> = {}
  try {
    const expected = moto.clock === undefined ? new Map([...differences, ...ofStandingClocks]) : differences
    const clock = moto.clock === undefined ? 'goes by itself, as there is no gcc' : 'all but stands until it is moved'
    report.say(`moto ${moto.version}, whose clock ${clock}`)
    report.say(
      "beside MessageSystemAttributeNames, which it does not know, it is sent AttributeNames, SQS's older name for it",
    )
    for (const kind of ['standard', 'fifo'] as const) figures[`moto ${kind}`] = await run(report, kind, moto, expected)
  } finally {
    await moto.stop()
  }
  const { SQS_ENDPOINT: endpoint, SQS_REGION: region = 'eu-central-1' } = process.env
  if (endpoint === undefined) report.say('— SQS_ENDPOINT is not set: no other service is asked')
  else {
    const service = namedService(endpoint, region)
    for (const kind of ['standard', 'fifo'] as const)
      figures[`${endpoint} ${kind}`] = await run(report, kind, service, ofStandingClocks)
  }
  return figures
}

async function run(
  report: Report,
  kind: 'standard' | 'fifo',
  service: SqsService,
  expected: ReadonlyMap<string, string>,
): Promise<unknown> {
  const { passed, skipped, failed } = await examined(kind, service)
  report.say(`— ${service.name}, ${kind} queues: ${passed} cases pass`)
  for (const [reason, cases] of [...skipped].sort(([, a], [, b]) => b - a))
    report.say(`skipped: ${cases} cases, as ${reason}`)
  for (const [title, why] of expected) if (failed.has(title)) report.say(`differs: '${title}': ${why}`)
  const unexpected = [...failed].filter(([title]) => !expected.has(title))
  for (const [title, said] of unexpected) report.say(`failed: '${title}': ${said}`)
  report.claim(`every other case passes (${unexpected.length} do not)`, unexpected.length === 0 && passed > 0)
  return { passed, skipped: [...skipped.values()].reduce((sum, cases) => sum + cases, 0), differ: failed.size }
}

async function examined(kind: 'standard' | 'fifo', service: SqsService): Promise<Outcome> {
  const makeHarness = sqsHarnessOn(kind, async () => service)
  const skipped = new Map<string, number>()
  const failed = new Map<string, string>()
  let passed = 0
  for (const contractCase of storeContract.flatMap(({ cases }) => cases)) {
    try {
      const reason = await runContractCase(makeHarness, contractCase)
      if (reason === undefined) passed += 1
      else skipped.set(reason, (skipped.get(reason) ?? 0) + 1)
    } catch (error) {
      failed.set(contractCase.title, (error as Error).message.split('\n').slice(0, 8).join(' '))
    }
  }
  return { passed, skipped, failed }
}
