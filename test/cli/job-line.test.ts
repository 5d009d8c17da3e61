import { createHash, createHmac } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { progressText } from '#src/cli/streaming/enqueue-lines.js'
import { packedInput } from '#src/cli/streaming/envelopes.js'
import { numberedLines, textOf } from '#src/cli/streaming/input-text.js'
import { envelopeJobs, plainJob } from '#src/cli/streaming/job-line.js'

const rules = { task: 'mail', key: undefined, newIds: false, options: {}, hash: () => createHash('sha256') }
const line = (text: string, number = 1) => ({ text, number })

describe('a plain line', () => {
  it('has the same id for the same number, text and task, and a different one otherwise', () => {
    const idOf = (text: string, number: number, task = 'mail') =>
      plainJob(line(text, number), { ...rules, task }).lineId
    expect(idOf('{"a":1}', 7)).toMatch(/^line-7-[\w-]{16}$/)
    expect(idOf('{"a":1}\r', 7)).toBe(idOf('{"a":1}', 7))
    expect(new Set([idOf('1', 7), idOf('1', 8), idOf('2', 7), idOf('1', 7, 'other')]).size).toBe(4)
  })

  it('has another id under each key of a seal', () => {
    const idOf = (key: string) => plainJob(line('{"a":1}'), { ...rules, hash: () => createHmac('sha256', key) }).lineId
    expect(idOf('one')).toBe(idOf('one'))
    expect(new Set([idOf('one'), idOf('two'), plainJob(line('{"a":1}'), rules).lineId]).size).toBe(3)
  })

  it('takes its id from the field that --key names, and is refused if the field holds neither text nor number', () => {
    const keyed = (text: string) => plainJob(line(text), { ...rules, key: 'order.id' }).options.id
    expect(['{"order":{"id":5}}', '{"order":{"id":"x"}}'].map(keyed)).toEqual(['5', 'x'])
    for (const text of ['{"order":1}', '7', 'null', '{"order":{"id":true}}'])
      expect(() => keyed(text)).toThrow(/no text and no number at 'order\.id'/)
  })

  it('that is not JSON is refused', () => {
    expect(() => plainJob(line('{'), rules)).toThrow(/^not JSON: /)
  })
})

describe('an envelope line', () => {
  const jobs = (envelope: object, options = {}) =>
    envelopeJobs(line(JSON.stringify(envelope)), { ...rules, task: undefined, options }, Date.UTC(2030, 0))

  it('describes its whole job; flags override it', () => {
    const envelope = {
      task: 'mail',
      id: 'a',
      queue: 'low',
      priority: 3,
      group: 'g',
      input: 1,
      meta: { by: 'me' },
      fields: { n: 1 },
    }
    const { task: _, input: __, ...options } = envelope
    expect(jobs(envelope)).toMatchObject([{ task: 'mail', input: 1, options }])
    expect(jobs(envelope, { queue: 'high' })).toMatchObject([{ options: { ...options, queue: 'high' } }])
  })

  it('keeps its due time only if the job was not due yet', () => {
    const runAt = '2031-01-01T00:00:00.000Z'
    expect(jobs({ task: 'a', input: 1, runAt })[0]!.options).toEqual({ runAt })
    expect(jobs({ task: 'a', input: 1, runAt, state: 'scheduled' })[0]!.options).toEqual({ runAt })
    expect(jobs({ task: 'a', input: 1, runAt, state: 'ready' })[0]!.options).toEqual({})
  })

  it('expires when its job would have expired, and is left out if that has passed', () => {
    const expiring = (expiresAt: string) => jobs({ task: 'a', input: 1, expiresAt }).map(({ options }) => options)
    expect(expiring('2030-01-01T00:00:05Z')).toEqual([{ expiresIn: 5_000 }])
    expect(expiring('2029-12-31T23:59:59Z')).toEqual([])
  })

  it('with a due time and an expiry becomes a job with a delay, because `runAt` and `expiresIn` exclude each other', () => {
    const later = { task: 'a', input: 1, state: 'scheduled', expiresAt: '2030-01-01T00:00:05Z' }
    const optionsOf = (runAt: string) => jobs({ ...later, runAt })[0]!.options
    expect(optionsOf('2030-01-01T00:00:02Z')).toEqual({ expiresIn: 5_000, delay: 2_000 })
    expect(optionsOf('2029-12-31T23:59:59Z')).toEqual({ expiresIn: 5_000, delay: 0 })
  })

  it('for a job that was not waiting is left out', () => {
    for (const state of ['running', 'completed', 'dead', 'cancelled'])
      expect(jobs({ task: 'a', input: 1, state })).toEqual([])
  })

  it('holds values that JSON lacks as the codec wraps them', () => {
    const input = { $millrace: 1, json: { at: '2026-01-01T00:00:00.000Z' }, types: [['date', 'at']] }
    expect(jobs({ task: 'a', input })[0]!.input).toEqual({ at: new Date('2026-01-01') })
  })

  it.each([
    ['numbers', { ns: 1_700_000_000_123 * 1e6, big: 2 ** 60 }],
    ['numbers beside a date', { at: new Date(1e12), ns: 1.7e18 }],
    ['big integers', { id: 12345678901234567890n, small: 1n }],
    [
      'numbers and big integers in a map',
      new Map<string, unknown>([
        ['a', 2 ** 60],
        ['b', 2n ** 60n],
      ]),
    ],
  ])('keeps %s beyond 2^53 in inputs, metas and payloads', (_, value) => {
    const content = { input: packedInput(value), meta: packedInput({ value }) }
    const kept = { input: value, options: { meta: { value } } }
    expect(jobs({ task: 'a', ...content })).toMatchObject([kept])
    expect(jobs({ task: 'a', id: '7', payloads: [content, content] })).toMatchObject([kept, kept])
  })

  it('of another language keeps long integers beside a date', () => {
    const input =
      '{"$millrace":1,"json":{"at":"2026-01-01T00:00:00.000Z","n":12345678901234567891},"types":[["date","at"]]}'
    expect(envelopeJobs(line(`{"task":"a","input":${input}}`), rules, 0)[0]!.input).toEqual({
      at: new Date('2026-01-01'),
      n: 12345678901234567891n,
    })
  })

  it('for an ordered job becomes one job for each payload', () => {
    const payloads = [
      { input: 1, score: 5 },
      { input: 2, score: 6, meta: { x: 1 } },
    ]
    expect(jobs({ task: 'a', id: '7', payloads })).toMatchObject([
      { input: 1, options: { id: '7', score: 5 } },
      { input: 2, options: { id: '7', score: 6, meta: { x: 1 } } },
    ])
    const names = jobs({ task: 'a', id: '7', payloads: [{ input: 1 }, { input: 1 }] }).map(({ lineId }) => lineId)
    expect(new Set(names).size).toBe(2)
  })

  it.each([
    [[1], /expected \{"task","input"\}/],
    [{ task: 'a' }, /expected \{"task","input"\}/],
    [{ task: 'a', input: 1, prioritty: 3 }, /has 'prioritty'; there are task, input, meta, id, .*queue, priority/],
    [{ task: 'a', input: 1, expiresAt: 'soon' }, /^expiresAt must be .* ISO-8601 text .*; got "soon"$/],
    [{ queues: [] }, /page of `jobs list --json`; `jobs list --envelope`/],
  ])('%j is refused', (envelope, message) => {
    expect(() => jobs(envelope)).toThrow(message)
  })
})

describe('numbered lines', () => {
  const lines = async (...chunks: (string | number[])[]) => {
    const bytes = chunks.map((chunk) => (typeof chunk === 'string' ? Buffer.from(chunk) : Uint8Array.from(chunk)))
    const batches: string[][] = []
    for await (const batch of numberedLines(
      (async function* () {
        yield* bytes
      })(),
    ))
      batches.push(batch.map(({ number, text }) => `${number} ${text.trim()}`))
    return batches
  }

  it('are emitted as they arrive, joined across chunks and characters, with blank lines counted', async () => {
    const [first, second] = [Buffer.from('1\n\n"é'), Buffer.from('é"\r\n3')]
    const cut = first.length - 1
    expect(await lines([...first.subarray(0, cut)], [...first.subarray(cut), ...second], '\n4')).toEqual([
      ['1 1'],
      ['3 "éé"'],
      ['4 3'],
      ['5 4'],
    ])
  })

  it('drop a byte order mark', async () => {
    expect(await lines('\ufeff1\n')).toEqual([['1 1']])
  })

  it('that are not UTF-8, or do not end, are refused with their number', async () => {
    await expect(lines('1\n', [0xff, 0xff])).rejects.toThrow(/no UTF-8 behind line 1/)
    await expect(lines('1\n', 'x'.repeat(17_000_000))).rejects.toThrow(/line 2 is longer than 16777216/)
  })
})

describe('lines in another format', () => {
  const bytesOf = async (...chunks: Uint8Array[]) => {
    for await (const _ of numberedLines(
      (async function* () {
        yield* chunks
      })(),
    ));
  }
  const utf16 = Buffer.from('{"a":1}\n', 'utf16le')

  it.each([
    [
      'UTF-16 with its mark',
      Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
      /^standard input is UTF-16, .*`iconv -f utf-16 -t utf-8`/,
    ],
    [
      'UTF-16 with the other mark',
      Buffer.concat([Buffer.from([0xfe, 0xff]), utf16.swap16()]),
      /^standard input is UTF-16, /,
    ],
    ['UTF-16 without a mark', Buffer.from('{"a":1}\n', 'utf16le'), /UTF-16 without a byte order mark, .*-f utf-16le/],
    ['gzip', gzipSync('{"a":1}\n'), /is compressed by gzip, .*`gunzip -c`/],
    ['a ZIP archive', Buffer.from('PK\u0003\u0004'), /is a ZIP archive, .*`unzip -p`/],
  ])('are refused with their format and the command that converts them: %s', async (_, bytes, message) => {
    await expect(bytesOf(bytes)).rejects.toThrow(message)
    expect(() => textOf(bytes, "file 'a.json'")).toThrow(/^file 'a\.json' is .*must be UTF-8/)
  })

  it('are taken for Latin-1 if they are not UTF-8', async () => {
    const latin = Buffer.from('{"a":"\u00e9"}\n', 'latin1')
    await expect(bytesOf(Buffer.from('1\n'), latin)).rejects.toThrow(/behind line 1; .*If it is Latin-1, .*-f latin1/)
    expect(() => textOf(latin, 'x')).toThrow(/x is no UTF-8; if it is Latin-1/)
    expect(textOf(Buffer.from('\ufeff"\u00e9"'), 'x')).toBe('"\u00e9"')
  })
})

describe('the progress of a stream', () => {
  it('shows lines and pace, and for a file how much is done', () => {
    const of = (bytes: number, total?: number) => progressText({ lines: 12_000, bytes, total, ms: 2_000 })
    expect(of(5)).toBe('12,000 lines, 6,000/s')
    expect(of(50, 100)).toBe('████████████░░░░░░░░░░░░ 50 %  12,000 lines, 6,000/s')
    expect(of(200, 100)).toContain('100 %')
  })
})
