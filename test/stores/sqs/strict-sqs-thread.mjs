/**
 * A thread with an SQS emulator whose clock is moved from outside, behind a door that is as strict as the service: what SQS
 * refuses and the emulator takes is refused here. Faults are made at the door too.
 */

import { createServer, request } from 'node:http'
import { parentPort, workerData } from 'node:worker_threads'

/** What is added to the real time, and 1 where that stands still. */
const clock = new Float64Array(workerData.clock)
const realNow = Date.now
// Before the emulator is loaded: it reads the time from here.
Date.now = () => (clock[1] === 1 ? 0 : realNow()) + clock[0]
const { startFauxqs } = await import('fauxqs')
const emulator = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })

/** Faults to make, first to last: each for the next calls of its kind. */
const faults = []
/** Calls that came in, by kind. */
const calls = {}
const purged = new Map()
/**
 * Copies of messages, as a server of SQS keeps them that was away when they were received: each is delivered by another call,
 * and again when it is no longer hidden, until it is deleted itself.
 */
let copies = []
let copiesMade = 0
const copiedBodies = []

parentPort.on('message', ({ number, fault }) => {
  if (fault !== undefined) faults.push(fault)
  parentPort.postMessage({ number, calls, copies: { bodies: copiedBodies, left: copies.length } })
})

const batches = ['SendMessageBatch', 'DeleteMessageBatch', 'ChangeMessageVisibilityBatch']

/** Why SQS would refuse the call; undefined if it would not. */
function refusal(kind, { Entries, QueueUrl, ...body }) {
  const wrong = (code, message) => ({ __type: `com.amazonaws.sqs#${code}`, message })
  if (batches.includes(kind)) {
    if (!Array.isArray(Entries) || Entries.length === 0) return wrong('EmptyBatchRequest', 'no entries')
    if (Entries.length > 10) return wrong('TooManyEntriesInBatchRequest', `${Entries.length} entries`)
    if (new Set(Entries.map(({ Id }) => Id)).size < Entries.length)
      return wrong('BatchEntryIdsNotDistinct', 'two entries have one id')
    if (Entries.some(({ Id }) => !/^[\w-]{1,80}$/.test(Id))) return wrong('InvalidBatchEntryId', 'a wrong id')
    const bytes = Entries.reduce((sum, entry) => sum + bytesOf(entry), 0)
    if (bytes > 1_048_576) return wrong('BatchRequestTooLong', `${bytes} bytes`)
  }
  for (const { MessageBody, DelaySeconds = 0, VisibilityTimeout = 0, MessageAttributes = {} } of [
    body,
    ...(Entries ?? []),
  ]) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those that SQS refuses
    if (MessageBody !== undefined && /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/.test(MessageBody))
      return wrong('InvalidMessageContents', 'a character that is none of XML 1.0')
    if (MessageBody === '') return wrong('MissingParameter', 'an empty body')
    if (!isWithin(DelaySeconds, 900)) return wrong('InvalidParameterValue', `DelaySeconds ${DelaySeconds}`)
    if (DelaySeconds !== 0 && QueueUrl.endsWith('.fifo'))
      return wrong('InvalidParameterValue', 'a delay of one message of a FIFO queue')
    if (!isWithin(VisibilityTimeout, 43_200))
      return wrong('InvalidParameterValue', `VisibilityTimeout ${VisibilityTimeout}`)
    if (Object.keys(MessageAttributes).length > 10) return wrong('InvalidParameterValue', 'more than 10 attributes')
  }
  if (kind === 'PurgeQueue') {
    if (Date.now() < (purged.get(QueueUrl) ?? 0) + 60_000) return wrong('PurgeQueueInProgress', 'once in 60 s')
    purged.set(QueueUrl, Date.now())
  }
  return undefined
}

const isWithin = (value, most) => Number.isInteger(value) && value >= 0 && value <= most

function bytesOf({ MessageBody = '', MessageAttributes = {} }) {
  const attributes = Object.entries(MessageAttributes).map(
    ([name, { DataType, StringValue = '' }]) => name + DataType + StringValue,
  )
  return [MessageBody, ...attributes].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

/** The fault for this call, if there is one. */
function faultFor(kind) {
  const at = faults.findIndex((fault) => fault.call === undefined || fault.call === kind)
  if (at === -1) return undefined
  const fault = faults[at]
  fault.times = (fault.times ?? 1) - 1
  if (fault.times === 0) faults.splice(at, 1)
  return fault
}

/** Adds copies to what is received, as far as there is room, and makes new ones of this share of it. */
function withCopies({ QueueUrl, MaxNumberOfMessages = 1, VisibilityTimeout = 30 }, messages, share) {
  const now = Date.now()
  const due = copies.filter(({ queueUrl, hiddenUntil }) => queueUrl === QueueUrl && hiddenUntil <= now)
  const delivered = due.slice(0, Math.max(0, MaxNumberOfMessages - messages.length))
  for (const copy of delivered) {
    copy.hiddenUntil = now + VisibilityTimeout * 1_000
    copiedBodies.push(copy.message.Body)
  }
  for (const message of QueueUrl.endsWith('.fifo') ? [] : messages)
    if (Math.random() < share) {
      const ReceiptHandle = `copy-${++copiesMade}`
      copies.push({ queueUrl: QueueUrl, message: { ...message, ReceiptHandle }, hiddenUntil: now })
    }
  return [...messages, ...delivered.map(({ message }) => message)]
}

/** Deletes or hides a copy. False if the entry is not about one that is here. */
function didToCopy(kind, { ReceiptHandle, VisibilityTimeout }) {
  const copy = copies.find(({ message }) => message.ReceiptHandle === ReceiptHandle)
  if (copy === undefined) return false
  if (kind === 'DeleteMessageBatch') copies = copies.filter((one) => one !== copy)
  else copy.hiddenUntil = Date.now() + VisibilityTimeout * 1_000
  return true
}

function answer(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' })
  response.end(JSON.stringify(body))
}

function forward(headers, text) {
  return new Promise((resolve, reject) => {
    const options = { port: emulator.port, host: '127.0.0.1', method: 'POST', path: '/', headers }
    const sent = request(options, async (reply) => {
      const parts = []
      for await (const part of reply) parts.push(part)
      resolve({ status: reply.statusCode, body: JSON.parse(Buffer.concat(parts).toString() || '{}') })
    })
    sent.on('error', reject)
    sent.end(text)
  })
}

const door = createServer(async (incoming, response) => {
  const parts = []
  for await (const part of incoming) parts.push(part)
  const text = Buffer.concat(parts)
  const kind = (incoming.headers['x-amz-target'] ?? '').split('.').at(-1)
  calls[kind] = (calls[kind] ?? 0) + 1
  let body = JSON.parse(text.toString())
  const fault = faultFor(kind)
  if (fault?.cut === 'before') return incoming.socket.destroy()
  if (fault?.error !== undefined)
    return answer(response, fault.status ?? 400, {
      __type: `com.amazonaws.sqs#${fault.error}`,
      message: 'made by a fault',
    })
  if (fault?.empty) return answer(response, 200, {})
  const refused = refusal(kind, body)
  if (refused !== undefined) return answer(response, 400, refused)
  const failed = []
  if (fault?.entries !== undefined && Array.isArray(body.Entries)) {
    const { entries, code = 'InternalError', senderFault = false } = fault
    for (const i of entries)
      if (body.Entries[i])
        failed.push({ Id: body.Entries[i].Id, Code: code, SenderFault: senderFault, Message: 'made by a fault' })
    body = { ...body, Entries: body.Entries.filter((_, i) => !entries.includes(i)) }
  }
  if (copies.length > 0 && Array.isArray(body.Entries))
    body = { ...body, Entries: body.Entries.filter((entry) => !didToCopy(kind, entry)) }
  const { 'content-length': _, ...headers } = incoming.headers
  // What is left of it has been dealt with here.
  const isDone = Array.isArray(body.Entries) && body.Entries.length === 0
  const reply = isDone ? { status: 200, body: { Successful: [] } } : await forward(headers, JSON.stringify(body))
  if (fault?.cut === 'after') return incoming.socket.destroy()
  if (fault?.reversed) reply.body.Messages?.reverse()
  if (fault?.twice && reply.body.Messages !== undefined) {
    // Delivered again, as a standard queue may: under another receipt, of which the emulator knows nothing.
    reply.body.Messages = reply.body.Messages.flatMap((message) => [message, message])
  }
  if (kind === 'ReceiveMessage' && reply.status === 200) {
    const messages = withCopies(body, reply.body.Messages ?? [], fault?.copies ?? 0)
    if (messages.length > 0) reply.body.Messages = messages
  }
  answer(
    response,
    reply.status,
    failed.length === 0 ? reply.body : { ...reply.body, Failed: [...(reply.body.Failed ?? []), ...failed] },
  )
})
door.keepAliveTimeout = 60_000
door.listen(0, '127.0.0.1', () => parentPort.postMessage({ port: door.address().port }))
