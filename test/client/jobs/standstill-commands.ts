/** What `millrace jobs show` and `jobs list` tell of a job that waits. */

import type { JobHandle } from 'millrace'
import { expect } from 'vitest'
import { printed } from '../../cli/command-in-process.js'
import { project } from '../../cli/project.js'
import { configFile, type Scene, type Standstill } from './standstills.js'

export async function expectCommandsToTell(scene: Scene, { id, queue }: JobHandle, row: Standstill): Promise<void> {
  const { why, text, listed = new RegExp(why.replace('-', ' ')) } = row
  const cwd = project({ 'package.json': '{"type":"module"}', 'millrace.config.js': configFile })
  const options = { cwd, env: scene.env }
  const shown = await printed(['jobs', 'show', queue!, id], options)
  const line = shown.find((one) => one.startsWith('waits because'))
  expect(line?.replace(/^waits because +/, '')).toMatch(text)
  if (why === 'max-running' || why === 'exclusive') expect(line).toMatch(/: [bo]$/)
  const lines = await printed(['jobs', 'list', queue!], options)
  expect(lines.find((one) => one.startsWith(`${id} `) || one.startsWith(`  ${id} `))).toMatch(listed)
}
