/** The pictures of docs/throttling.md: drawn by a script, and shown there as they are drawn. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { run } from '../cli/command-in-process.js'
import { root } from '../cli/project.js'
import { Document } from './document.js'

const page = new Document('docs/throttling.md')

function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name.startsWith('throttle-'))
  return new Map(names.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

describe('the plots of throttles', () => {
  it('are what their script draws: drawing them again changes nothing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/throttle-plots.mjs'), folder], {
      encoding: 'utf8',
      timeout: 20_000,
    })

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(filesIn(folder).size).toBe(4)
    expect(filesIn(folder)).toEqual(filesIn(join(root, 'docs/images')))
  })

  it('are all on their page', () => {
    const shown = page.links.filter((link) => link.startsWith('images/')).map((link) => link.slice('images/'.length))

    expect(shown.sort()).toEqual([...filesIn(join(root, 'docs/images')).keys()])
  })

  it('in text form are those that the command draws', async () => {
    const { text } = page.blocks.find((block) => block.text.startsWith('$ millrace simulate'))!
    const [line, ...shown] = text.split('\n')
    const { code, stdout } = await run(line!.replace('$ millrace ', '').split(' '), { cwd: '/' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: `${shown.join('\n')}\n` })
  })
})
