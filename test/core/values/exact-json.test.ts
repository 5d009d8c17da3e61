/** Integers of other languages: exact by every entrance, and the places where JSON is read in another way. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTask } from 'millrace'
import { webHandler } from 'millrace/web'
import { describe, expect, it } from 'vitest'
import { bluequeEnvelope } from '#src/cli/commands/import/import-blueque.js'
import { jsonGiven } from '#src/cli/flags.js'
import { envelopeJobs, plainJob } from '#src/cli/streaming/job-line.js'
import { jsonCodec } from '#src/core/values/codec.js'
import { exactJson, exactJsonOfNode } from '#src/core/values/json.js'
import { readEnvelope } from '#src/stores/sqs/envelope.js'
import { root } from '../../cli/project.js'
import { testMill } from '../../test-mill.js'

const text = '{"id":1234567890123456789,"of":["x",-9007199254740993],"safe":9007199254740991}'
const value = { id: 1234567890123456789n, of: ['x', -9007199254740993n], safe: 9007199254740991 }
const line = { text, number: 1 }
const rules = { task: 'post', key: undefined, newIds: false, options: {} }

describe('an integer beyond 2^53 from another language is exact', () => {
  it.each<[string, () => unknown]>([
    ['in an argument of the command line', () => jsonGiven(text, 'the input')],
    ['in a line of NDJSON', () => plainJob(line, rules).input],
    [
      'in a line of an envelope',
      () => envelopeJobs({ text: `{"task":"post","input":${text}}`, number: 1 }, rules, 0)[0]!.input,
    ],
    [
      'in the meta of an envelope',
      () => envelopeJobs({ text: `{"task":"post","input":1,"meta":${text}}`, number: 1 }, rules, 0)[0]!.options.meta,
    ],
    [
      'in the parameters of Blueque',
      () => {
        const task = { id: 'a', record: { parameters: text }, eta: undefined }
        const { envelope } = bluequeEnvelope(task as never, { queue: 'q', task: 'post', isText: false }) as {
          envelope: object
        }
        return envelopeJobs({ text: JSON.stringify(envelope), number: 1 }, rules, 0)[0]!.input
      },
    ],
    [
      'in a message of SQS',
      () => {
        const { payload } = readEnvelope(JSON.stringify({ v: 1, task: 'post', payload: text })) as { payload: string }
        return jsonCodec.decode(payload)
      },
    ],
    [
      'in a body of HTTP',
      async () => {
        const mill = testMill({ tasks: [defineTask({ name: 'post' })] })
        const headers = { 'content-type': 'application/json', 'x-millrace': '1', host: 'localhost' }
        const body = `{"task":"post","id":"a","input":${text}}`
        const request = new Request('http://localhost/api/v1/queues/default/jobs', { method: 'POST', headers, body })
        expect((await webHandler(mill).fetch(request, { address: '127.0.0.1' })).status).toBe(201)
        return (await mill.job('a').record())!.input
      },
    ],
  ])('%s', async (_, read) => {
    expect(await read()).toStrictEqual(value)
  })

  it('in the id that --key names', () => {
    expect(plainJob(line, { ...rules, key: 'id' }).options.id).toBe('1234567890123456789')
  })
})

describe('exact JSON', () => {
  it('takes no text for a number, whatever its content', () => {
    const texts = ['1234567890123456789', '#1234567890123456789', '"1234567890123456789"', '\\1234567890123456789']
    const given = { texts, n: 1 }
    expect(exactJson(JSON.stringify(given))).toEqual(given)
    expect(exactJson(JSON.stringify({ ...given, big: 0 }).replace(':0', ':12345678901234567890'))).toEqual({
      ...given,
      big: 12345678901234567890n,
    })
  })

  it('leaves fractions, exponents and exact JavaScript numbers unchanged', () => {
    expect(exactJson('[0.1234567890123456789,1e20,9007199254740991,-0,1234567890123456e-3]')).toEqual([
      0.12345678901234568, 1e20, 9007199254740991, -0, 1234567890123.456,
    ])
  })

  it('leaves numbers that Node wrote into a stored payload as numbers', () => {
    const written = [2 ** 60, 2 ** 53, 1e20, -(2 ** 63), 123456789012345680000]
    expect(exactJsonOfNode(JSON.stringify(written))).toEqual(written)
    expect(jsonCodec.decode(jsonCodec.encode(written))).toEqual(written)
  })

  it('reports invalid JSON as JSON.parse does', () => {
    expect(() => exactJson('{"a":12345678901234567890')).toThrow(SyntaxError)
  })
})

it('JSON.parse is used only for text written by Millrace, npm or AWS', () => {
  const own =
    /^(?:stores\/|runtime\/line-channel|web\/access|mill\/base-folder|cli\/streaming\/envelopes|cli\/commands\/init-command|workers\/(?:claim-token|isolated\/child-output)|core\/(?:platform\/package-files|job\/job-failures|live-event|values\/json)|store-testing\/)/
  const src = join(root, 'src')
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && readFileSync(join(src, file), 'utf8').includes('JSON.parse('))
    .filter((file) => !own.test(file))

  expect(found).toEqual([])
})
