/** The types of the package, as a project sees them that has installed the tarball. */

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'
import { root } from '../cli/project.js'
import { installed, packed } from './tarball.js'
import { typedProgram } from './typed-program.js'
import { wrappingProgram } from './wrapping-program.js'

describe('the types of the installed package', () => {
  const tarball = packed()
  afterAll(() => tarball.remove())

  /** A project with this program and these modules. */
  function projectOf(options: object, modules: readonly string[], text = typedProgram): string {
    return installed(
      tarball,
      {
        'package.json': '{"type":"module"}',
        'use.ts': text,
        'tsconfig.json': JSON.stringify({
          compilerOptions: {
            strict: true,
            noEmit: true,
            skipLibCheck: false,
            skipDefaultLibCheck: true,
            target: 'es2023',
            ...options,
          },
          files: ['use.ts'],
        }),
      },
      modules,
    )
  }

  /** What TypeScript says of it. All declarations but its own are checked too. */
  function checked(...given: Parameters<typeof projectOf>) {
    const cwd = projectOf(...given)
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', cwd], { cwd, encoding: 'utf8' })
    return { status, stdout }
  }

  /** What TypeScript says of the program and of our declarations alone: of those of others somebody else must see to it. */
  function checkedOurs(...given: Parameters<typeof projectOf>) {
    const { options, fileNames } = ts.getParsedCommandLineOfConfigFile(
      join(projectOf(...given), 'tsconfig.json'),
      {},
      {
        ...ts.sys,
        onUnRecoverableConfigFileDiagnostic: ({ messageText }) => expect.fail(String(messageText)),
      },
    )!
    const program = ts.createProgram(fileNames, options)
    const ours = program
      .getSourceFiles()
      .filter(({ fileName }) => /\/use\.ts$|\/node_modules\/millrace\//.test(fileName))
    const mistakes = ours.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ])
    return {
      files: ours.length,
      mistakes: mistakes.map(
        ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
      ),
    }
  }

  it.each([
    { moduleResolution: 'nodenext', module: 'nodenext' },
    { moduleResolution: 'node16', module: 'node16' },
    { moduleResolution: 'bundler', module: 'esnext' },
    // TypeScript 6 asks whether one means it.
    { moduleResolution: 'node10', module: 'esnext', ignoreDeprecations: '6.0' },
  ])(
    'hold with library checks, without ioredis and without @types/node: moduleResolution $moduleResolution',
    (options) => {
      expect(checked({ ...options, types: [] }, [])).toEqual({ status: 0, stdout: '' })
    },
    60_000,
  )

  it.each([
    [['@types/node', 'undici-types']],
    [['ioredis', '@types/node', 'undici-types']],
    [['@aws-sdk/client-sqs', '@types/node', 'undici-types']],
  ])(
    'hold with library checks, next to %s',
    (modules) => {
      const options = { moduleResolution: 'nodenext', module: 'nodenext', types: ['node'] }
      const { files, mistakes } = checkedOurs(options, modules)

      expect(files).toBeGreaterThan(50)
      expect(mistakes).toEqual([])
    },
    60_000,
  )

  it.each([{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }])(
    'can be named in the declarations of a library that wraps each call: %o',
    (options) => {
      const emits = {
        ...options,
        noEmit: false,
        declaration: true,
        outDir: 'out',
        types: ['node'],
        exactOptionalPropertyTypes: true,
      }
      expect(checked(emits, ['@types/node'], wrappingProgram)).toEqual({ status: 0, stdout: '' })
    },
  )

  it('are as documented next to those of Node, ioredis and a schema', () => {
    const text = `
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { defineTask, millrace, redisStore } from 'millrace'
import { z } from 'zod'

const mail = defineTask({ name: 'mail', input: z.object({ to: z.email() }), run: async ({ to }) => to.length })
const mill = millrace({ store: 'memory:', tasks: [mail] })
export const sent: number = await (await mill.enqueue(mail, { to: 'ada@example.com' })).result()
// @ts-expect-error: the input is not what the schema accepts
await mill.enqueue(mail, { to: 1 })
export const other = redisStore({ connect: () => new Redis({ lazyConnect: true }) })
export const safe = redisStore({ url: { hosts: ['localhost'], tls: { ca: [readFileSync('ca.pem')] } } })
`
    const modules = ['zod', 'ioredis', '@types/node', 'undici-types']
    const options = { moduleResolution: 'nodenext', module: 'nodenext', types: ['node'], skipLibCheck: true }

    expect(checked(options, modules, text)).toEqual({ status: 0, stdout: '' })
  }, 60_000)
})
