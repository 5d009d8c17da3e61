/** The types of the package under the TypeScript in the folder `TYPESCRIPT`; by default, under that of the repository. */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'
import { installed, packed } from './tarball.js'
import { typedProgram } from './typed-program.js'

const typescript = process.env['TYPESCRIPT'] ?? join(root, 'node_modules/typescript')

describe('the types of the installed package pass with library checks on', () => {
  const tarball = packed()
  afterAll(() => tarball.remove())

  it.each([
    ['nodenext', 'nodenext'],
    ['node16', 'node16'],
    ['bundler', 'esnext'],
  ])(
    'moduleResolution %s',
    (moduleResolution, module) => {
      const libraries = { skipLibCheck: false, skipDefaultLibCheck: true, types: [] }
      const cwd = installed(tarball, {
        'package.json': '{"type":"module"}',
        'use.ts': typedProgram,
        'tsconfig.json': JSON.stringify({
          compilerOptions: { strict: true, noEmit: true, target: 'es2022', ...libraries, moduleResolution, module },
          files: ['use.ts'],
        }),
      })
      const { status, stdout } = spawnSync(process.execPath, [join(typescript, 'bin/tsc'), '-p', cwd], {
        cwd,
        encoding: 'utf8',
      })

      expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
    },
    60_000,
  )
})
