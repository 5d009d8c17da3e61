import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { childMessageIn } from '#src/workers/isolated/child-messages.js'
import { openCapture } from '#src/workers/isolated/child-output.js'

/** A folder whose path has so many bytes. */
function folderOf(bytes: number): string {
  const base = mkdtempSync(join(tmpdir(), 'mr-'))
  onTestFinished(() => rmSync(base, { recursive: true }))
  const folder = join(base, 'x'.repeat(bytes - base.length - 1))
  mkdirSync(folder)
  return folder
}

describe("the capture of a process' output", () => {
  it.each([60, 80, 86, 87, 88, 91, 92, 93, 107, 108, 150])(
    'passes bytes on, and leaves nothing behind, in a temporary folder of %i bytes',
    async (bytes) => {
      const root = folderOf(bytes)
      const { printing, reading } = await openCapture([root, '/tmp'])
      printing.write('printed')
      reading.resume()
      const [read] = (await once(reading, 'data')) as [Buffer]
      for (const socket of [printing, reading]) socket.destroy()
      expect(read.toString()).toBe('printed')
      expect(readdirSync(root)).toEqual([])
      expect(readdirSync(join(root, '..'))).toHaveLength(1)
    },
  )

  it('is refused if no folder is suitable, with a reason for each', async () => {
    const [long, missing] = [folderOf(120), join(tmpdir(), 'is-not-there')]
    const opened = openCapture([long, missing])
    await expect(opened).rejects.toMatchObject({ code: 'config-invalid' })
    await expect(opened).rejects.toThrow(
      /TMPDIR: must name a folder with a short path .* is 33 bytes too long .*; ENOENT.*is-not-there/s,
    )
  })
})

const settled = (more: object) => ({ kind: 'settled', verdict: { kind: 'complete', answer: 'ok', runMs: 5, ...more } })

describe('a message from the process of an isolated job', () => {
  it('is its verdict, with what its handler has enqueued', () => {
    for (const more of [{}, { enqueued: { mail: 3 } }]) expect(childMessageIn(settled(more))).toEqual(settled(more))
  })

  it.each([null, 3, { mail: '3' }, { mail: Number.NaN }, { mail: -1 }, { mail: 0.5 }, { '}': 1 }])(
    'is ignored with enqueued counts %j: the job may write to the channel as well',
    (enqueued) => {
      expect(childMessageIn(settled({ enqueued }))).toBeUndefined()
    },
  )
})
