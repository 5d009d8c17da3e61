import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { refuseOldNode } from '#src/core/platform/node-version.js'
import { root } from '../cli/project.js'

describe('the version of Node', () => {
  it.each(['18.20.4', '20.18.3', '16.0.0'])('%s is refused with the version that is needed', (version) => {
    expect(() => refuseOldNode(version)).toThrow(`Millrace needs Node 20.19 or newer; this is Node ${version}.`)
  })

  it.each(['20.19.0', '22.0.0', '24.3.1'])('%s is taken', (version) => {
    expect(() => refuseOldNode(version)).not.toThrow()
  })

  it('is the one that the package names', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(engines.node).toBe('>=20.19')
  })

  it('is looked at before anything that an older one lacks ends the process: no import by name of crc32', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    )
    const named = files.filter((file) => /import \{[^}]*crc32/.test(readFileSync(join(root, 'src', file), 'utf8')))
    expect(named).toEqual([])
  })
})
