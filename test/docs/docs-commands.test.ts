/** The commands of the documentation, against the program: sections, options, defaults, exit codes, environment. */

import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { exitCodeHelp } from '#src/cli/process/exit-code.js'
import { createProgram } from '#src/cli/program.js'
import { anchorOf } from '../../site/anchor.js'
import { commandPages, type Document, documents, plain } from './document.js'
import { source } from './interface-members.js'

const all = documents()
const [cli, ...commandParts] = commandPages() as [Document, ...Document[]]

/** The commands that one can run, by their full names. */
function leaves(command: Command, above: readonly string[] = []): [string, Command][] {
  const path = [...above, command.name()]
  if (command.commands.length > 0) return visible(command).flatMap((sub) => leaves(sub, path))
  return [[path.join(' '), command]]
}

/** The commands that the help shows, except `help` itself. */
function visible(command: Command): readonly Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((sub) => command.commands.includes(sub))
}

const program = await createProgram()
const commands = new Map(leaves(program))

describe('the pages of the command line', () => {
  const argumentsOf = (command: Command) => {
    const jobs = /^\[options\] (\[queue\] .+)$/.exec(command.usage())?.[1]
    if (jobs !== undefined) return [jobs]
    return command.registeredArguments.map((argument) => {
      const name = `${argument.name()}${argument.variadic ? '...' : ''}`
      return argument.required ? `<${name}>` : `[${name}]`
    })
  }

  const sections = commandParts.flatMap(({ path, headings }) =>
    headings.filter((heading) => heading.startsWith('millrace')).map((heading) => ({ path, heading })),
  )
  const titles = new Map([...commands].map(([path, command]) => [path, [path, ...argumentsOf(command)].join(' ')]))
  const partOf = (path: string) =>
    commandParts.find((part) => part.path === sections.find(({ heading }) => heading === titles.get(path))?.path)!

  it('have one section for each command with its arguments, and no other', () => {
    expect(sections.map(({ heading }) => heading).sort()).toEqual([...titles.values()].sort())
    for (const { path, headings } of commandParts) {
      const inOrder = [...titles.values()].filter((title) => headings.includes(title))
      expect({ path, sections: headings.filter((heading) => inOrder.includes(heading)) }).toEqual({
        path,
        sections: inOrder,
      })
    }
  })

  it('are all listed on the overview, each command with a link to its section', () => {
    const listed = [...cli.prose.matchAll(/^- \[`(millrace [^`]+)`\]\(([^)]+)\): /gm)].map(([, name, link]) => [
      name,
      link,
    ])
    const expected = [...titles].map(([path, title]) => [
      path,
      `${partOf(path).path.replace('docs/', '')}#${anchorOf(title)}`,
    ])

    expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(expected))
    expect(listed.length).toBe(expected.length)
    const files = all.map(({ path }) => path).filter((path) => path.startsWith('docs/cli/'))
    expect(commandParts.map(({ path }) => path).sort()).toEqual(files.sort())
  })

  it.each([...commands])('name every option of %s, with its default, and no other', (path, command) => {
    const rows = partOf(path).rows(path)
    const told = new Map(rows.map(([flags, given]) => [plain(flags!), plain(given!)]))

    expect([...told.keys()].sort()).toEqual(command.options.map(({ flags }) => flags).sort())
    for (const { flags, defaultValue, defaultValueDescription } of command.options)
      if (defaultValue !== undefined)
        expect({ flags, given: told.get(flags) }).toEqual({
          flags,
          given: defaultValueDescription ?? String(defaultValue),
        })
  })

  it('list the exit codes that the help lists', () => {
    const helped = [...exitCodeHelp.matchAll(/^ {2}(\d+)|[(,] ?(\d+):/gm)].map(([, line, inner]) => line ?? inner)

    expect(cli.rows('Exit codes').map(([code]) => code)).toEqual(helped.sort((a, b) => Number(a) - Number(b)))
  })

  it('are right about the environment variables that the program reads', () => {
    const named = cli.rows('Environment').map(([name]) => plain(name!))
    const [, help] = source('cli/program.ts').split('Environment:')
    const helped = [...help!.matchAll(/^ {2}([A-Z_]{4,}) /gm)].map(([, name]) => name!)

    expect(helped.length).toBe(9)
    expect(named).toEqual(expect.arrayContaining(helped))
    expect(source('mill/load-mill.ts')).toContain("env['MILLRACE_CONFIG']")
    expect(source('mill/configuration/environment.ts')).toMatch(/MILLRACE_STORE: store, MILLRACE_NAMESPACE: namespace/)
    expect(source('runtime/process/process-identity.ts')).toContain("process.env['MILLRACE_HOST']")
  })
})

describe('commands that the documentation mentions', () => {
  it('exist, with the options that are mentioned with them', () => {
    const named = all.flatMap(({ path, codeSpans, blocks }) =>
      [...codeSpans, ...blocks.filter(({ language }) => language === 'sh').flatMap(({ text }) => text.split('\n'))]
        .map((code) => /^(?:npx )?(millrace [a-z].*)$/.exec(code)?.[1])
        .filter((code) => code !== undefined)
        .map((code) => ({ path, code })),
    )
    const wrong = named.filter(({ code }) => {
      const [, command] = [...commands].find(([name]) => code === name || code.startsWith(`${name} `)) ?? []
      if (command === undefined) return !program.commands.some((noun) => code === `millrace ${noun.name()}`)
      const flags = [...code.matchAll(/ (--[a-z-]+)/g)].map(([, flag]) => flag)
      return flags.some((flag) => flag !== '--help' && !command.options.some(({ long }) => long === flag))
    })

    expect(named.length).toBeGreaterThan(15)
    expect(wrong.filter(({ code }) => !code.includes('|') && !code.startsWith('millrace <'))).toEqual([])
  })
})
