/** The members of an interface of the source, as the compiler reads them: name, and the default that their comments tell. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { root } from '../cli/project.js'

export interface Member {
  readonly name: string
  /** The default, where its comment says one in so many words. */
  readonly told: string | undefined
}

/** `path`: from `src`. */
export function source(path: string): string {
  return readFileSync(join(root, 'src', path), 'utf8')
}

export function membersOf(path: string, name: string): Member[] {
  const file = ts.createSourceFile(path, source(path), ts.ScriptTarget.Latest, true)
  const found = file.statements.filter(ts.isInterfaceDeclaration).find((statement) => statement.name.text === name)!
  return found.members.map((member) => {
    const comment = file.text.slice(member.getFullStart(), member.getStart())
    // One that goes on in words ("true where …") is none in so many words.
    const told = /Default:? (`[^`]+`|\d[\d,]*|true|false)(?=[.,;])/.exec(comment)?.[1]
    return { name: member.name!.getText(), told: told && value(told) }
  })
}

/** A default as it is compared: without backticks, quotes and thousands separators. */
export function value(cell: string): string {
  return cell.replace(/[`']/g, '').replaceAll(',', '')
}
