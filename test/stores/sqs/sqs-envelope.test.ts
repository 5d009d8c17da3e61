/** The envelope as others see it: its published schema, and a program in another language that sends one. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { defineTask } from 'millrace'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ApiCalls, openSqs } from '#src/stores/sqs/client/sqs-sdk.js'
import { type Envelope, envelopeForms, envelopeText, readEnvelope } from '#src/stores/sqs/envelope.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'
import { nextEvent } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { pythonProgram } from './python-program.js'
import { type StrictSqs, strictSqs } from './strict-sqs.js'

const docs = join(import.meta.dirname, '../../../docs/stores')
const schemaFile = JSON.parse(readFileSync(join(docs, 'sqs-envelope.schema.json'), 'utf8')) as {
  properties: Record<string, unknown>
}
const fits = new Ajv2020().compile(schemaFile)

describe('the published schema of the envelope', () => {
  const every: Envelope = {
    ...{ id: 'a', task: 't', payload: '1', codec: 'json', meta: '{}', group: 'g', createdAt: 1, dueAt: 2, attempts: 3 },
  }
  const bytes: Envelope = { task: 't', payload: Uint8Array.of(1, 255), meta: Uint8Array.of(0) }

  it('accepts every envelope that is written, and describes every field of it', () => {
    const written = [
      envelopeText(every),
      envelopeText(bytes),
      ...envelopeForms(every, { reason: 'max-retries', error: 'no' }),
    ].map((text) => JSON.parse(text) as object)

    for (const one of written) expect(fits(one), fits.errors?.[0]?.message).toBe(true)
    expect(new Set(written.flatMap((one) => Object.keys(one)))).toEqual(new Set(Object.keys(schemaFile.properties)))
  })

  it.each([
    ['{"v":1,"task":"t","payload":"1"}'],
    ['{"v":1,"task":"t","payload64":"AQ=="}'],
    ['{"v":1,"task":"t","payload":"1","unknown":true}'],
    ['{"v":2,"task":"t","payload":"1"}'],
    ['{"v":1,"payload":"1"}'],
    ['{"v":1,"task":"","payload":"1"}'],
    ['{"v":1,"task":"t"}'],
    ['{"v":1,"task":"t","payload":1}'],
    ['{"v":1,"task":"t","payload":"1","dueAt":-1}'],
    ['{"v":1,"task":"t","payload":"1","payload64":"AQ=="}'],
    ['{"v":1,"task":"t","payload":"1","meta64":"%"}'],
    ['{"v":1,"task":"t","payload64":"QUJ"}'],
    ['{"v":1,"task":"t","payload64":"QUI="}'],
    ['{"v":1,"task":"t","payload64":"QQ_="}'],
  ])('agrees with the store: %s', (text) => {
    expect(fits(JSON.parse(text))).toBe(!('problem' in readEnvelope(text)))
  })
})

/** As much of it as the program needs, without signatures: the emulator reads none. */
const boto3 = `
import json, os, urllib.request
class Sqs:
    def _call(self, kind, **body):
        headers = {'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.' + kind}
        request = urllib.request.Request(os.environ['AWS_ENDPOINT_URL'], json.dumps(body).encode(), headers)
        return json.load(urllib.request.urlopen(request))
    def get_queue_url(self, **body): return self._call('GetQueueUrl', **body)
    def send_message(self, **body): return self._call('SendMessage', **body)
def client(_): return Sqs()
`

describe('the program of the page', () => {
  let sqs: StrictSqs
  beforeAll(async () => {
    sqs = await strictSqs()
  })
  afterAll(() => sqs.close())

  it('sends a job that a worker runs', async () => {
    const [, program] = /```python\n([\s\S]+?)```/.exec(readFileSync(join(docs, 'sqs.md'), 'utf8'))!
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'send_job.py'), program!)
    writeFileSync(join(folder, 'boto3.py'), boto3)
    const api = await openSqs({ region: 'us-east-1', endpoint: sqs.endpoint, poll: 'first' }, new ApiCalls())
    const inputs: unknown[] = []
    const task = defineTask({ name: 'send-email', run: async (input) => void inputs.push(input) })
    const mill = testMillOn(new SqsStore({ api, namespace: 'millrace' }), { tasks: [task] })
    await mill.createQueues()
    const ended = nextEvent(mill, 'job.completed')
    const args = ['send_job.py', 'send-email', '{"to": "ada@example.com"}']
    const python = await pythonProgram()
    const env = { ...process.env, ...python.env, AWS_ENDPOINT_URL: sqs.endpoint }
    const sender = spawn(python.path, args, { cwd: folder, env })
    expect(await once(sender, 'close')).toEqual([0, null])
    const worker = mill.worker()
    await worker.start()
    await ended
    await worker.stop()

    expect(inputs).toEqual([{ to: 'ada@example.com' }])
    // The first time on a machine without Python takes half a minute.
  }, 300_000)

  it('needs Python: without one, and without Debian, the error says what to install', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))

    await expect(pythonProgram({ PATH: '/nowhere' }, folder)).rejects.toThrow(
      /^no Python to send a job with: none is on the PATH, and Debian's could not be unpacked \(.*apt-get.*\); install python3$/,
    )
  })
})
