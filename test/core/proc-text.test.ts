import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bootIdIn, hasEnded, pidNamespaceIn, residentBytesIn, startTicksIn } from '#src/core/platform/proc-text.js'

/** Of a process called `a (b) c`, state R, that began at tick 1300. */
const fields = ['R', ...Array.from({ length: 49 }, (_, i) => String(i * 100 - 500))]
const stat = `4711 (a (b) c) ${fields.join(' ')}\n`
const status = 'Name:\tnode\nUmask:\t0022\nState:\tS (sleeping)\nVmPeak:\t  999 kB\nVmRSS:\t   52148 kB\nThreads:\t11\n'
/** As the kernel writes it for a process that has ended and was not waited for. */
const zombieStatus = 'Name:\tnode\nState:\tZ (zombie)\nTgid:\t4711\nThreads:\t1\nSigQ:\t0/15613\n'

describe('a text of /proc', () => {
  it('is read correctly behind a command with spaces and brackets', () => {
    expect(startTicksIn(stat)).toBe(1_300)
    expect(hasEnded(stat)).toBe(false)
    expect(hasEnded(stat.replace(') R', ') Z'))).toBe(true)
    expect(hasEnded(stat.replace(') R', ') X'))).toBe(true)
    expect(residentBytesIn(status)).toBe(52_148 * 1_024)
    expect(pidNamespaceIn('pid:[4026531836]')).toBe('4026531836')
    const id = '749ff32c-2a37-4b5b-9c1d-5a3f1f6a8c11'
    expect(bootIdIn(`${id}\n`)).toBe(id)
  })

  it('of a zombie has no memory figure', () => {
    expect(residentBytesIn(zombieStatus)).toBeUndefined()
  })

  it('that is empty yields nothing', () => {
    const readers = [residentBytesIn, startTicksIn, hasEnded, bootIdIn, pidNamespaceIn]
    expect(readers.map((read) => read(''))).toEqual(readers.map(() => undefined))
  })

  it('that is cut anywhere yields the same as the whole, or nothing', () => {
    const id = '749ff32c-2a37-4b5b-9c1d-5a3f1f6a8c11'
    const cases: [(text: string) => unknown, string][] = [
      [residentBytesIn, status],
      [startTicksIn, stat],
      [hasEnded, stat],
      [bootIdIn, id],
      [pidNamespaceIn, 'pid:[4026531836]'],
    ]
    for (const [read, text] of cases)
      for (let end = 0; end <= text.length; end += 1)
        expect([undefined, read(text)], `${read.name} of ${end} bytes`).toContain(read(text.slice(0, end)))
  })
})

it('every file under /proc that src reads is parsed by such a reader', () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const reads = files.flatMap((file) =>
    readFileSync(join('src', file), 'utf8')
      .split('\n')
      .filter((line) => /read(?:File|link)Sync\(\s*[`'"]\/(?:proc|sys)\//.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )
  expect(reads.length).toBeGreaterThanOrEqual(6)
  const judged =
    /\b(?:bootIdIn|pidNamespaceIn|startTicksIn|hasEnded|residentBytesIn|switchesIn|isOver|isTooLarge|variableIn)\(read|unwatchedHeaps\(registry, read/
  expect(reads.filter((read) => !judged.test(read))).toEqual([])
})
