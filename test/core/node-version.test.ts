import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { refuseOldNode } from '#src/core/platform/node-version.js'
import { root } from '../cli/project.js'

describe('the version of Node', () => {
  it.each(['18.20.4', '20.18.3', '16.0.0'])('%s is refused, and the error names the required version', (version) => {
    expect(() => refuseOldNode(version)).toThrow(`Millrace needs Node 20.19 or newer; this is Node ${version}.`)
  })

  it.each(['20.19.0', '22.0.0', '24.3.1'])('%s is accepted', (version) => {
    expect(() => refuseOldNode(version)).not.toThrow()
  })

  it('is the one that the package requires', () => {
    const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    expect(engines.node).toBe('>=20.19')
  })

  it('is checked before an older Node fails on a missing import: no file imports crc32 by name', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.ts'),
    )
    const named = files.filter((file) => /import \{[^}]*crc32/.test(readFileSync(join(root, 'src', file), 'utf8')))
    expect(named).toEqual([])
  })
})
