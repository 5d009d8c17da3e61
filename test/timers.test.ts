/** Timers: Node waits at most 2^31 − 1 ms; a longer timer fires at once, and again, with a `TimeoutOverflowWarning`. */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { restartDelayMs } from '#src/cli/supervise/supervisor.js'
import { outageDelayMs } from '#src/core/platform/timer.js'

const src = join(import.meta.dirname, '../src')
const longestMs = 2 ** 31 - 1
const timers = new Set(['setTimeout', 'setInterval', 'delay', 'sleep'])
/** Functions of the house whose answer is bounded, and its bound in ms; chance is less than 1. */
const mostOf = new Map([
  ['timerMs', longestMs],
  ['random', 1],
  ['systemRandom', 1],
  ['outageDelayMs', outageDelayMs(1_000, () => 1)],
  ['restartDelayMs', restartDelayMs(1_000, () => 1)],
])

/** The most that an expression can be, as far as the file alone tells; infinite where it does not. */
function most(node: ts.Expression, file: ts.SourceFile): number {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return most(node.expression, file)
  if (ts.isNumericLiteral(node)) return Number(node.text.replaceAll('_', ''))
  if (ts.isConditionalExpression(node)) return Math.max(most(node.whenTrue, file), most(node.whenFalse, file))
  if (ts.isBinaryExpression(node)) return ofBoth(node, file)
  if (ts.isArrayLiteralExpression(node)) return Math.max(...node.elements.map((element) => most(element, file)))
  if (ts.isElementAccessExpression(node)) return most(node.expression, file)
  if (ts.isIdentifier(node)) return ofConstant(node.text, file)
  if (!ts.isCallExpression(node)) return Number.POSITIVE_INFINITY
  const called = node.expression.getText(file)
  const mosts = node.arguments.map((argument) => most(argument, file))
  if (called === 'Math.min') return Math.min(...mosts)
  if (called === 'Math.max') return Math.max(...mosts)
  return mostOf.get(called.split('.').at(-1)!) ?? Number.POSITIVE_INFINITY
}

function ofBoth(node: ts.BinaryExpression, file: ts.SourceFile): number {
  const [left, right] = [most(node.left, file), most(node.right, file)]
  switch (node.operatorToken.kind) {
    case ts.SyntaxKind.PlusToken:
      return left + right
    case ts.SyntaxKind.MinusToken:
      return ts.isNumericLiteral(node.right) ? left - right : left
    case ts.SyntaxKind.AsteriskToken:
      return left * right
    case ts.SyntaxKind.AsteriskAsteriskToken:
      return left ** right
    case ts.SyntaxKind.SlashToken:
      return ts.isNumericLiteral(node.right) ? left / right : Number.POSITIVE_INFINITY
    default:
      return Number.POSITIVE_INFINITY
  }
}

/** A constant of the file, or of the one that it is imported from. */
function ofConstant(name: string, file: ts.SourceFile): number {
  let value = Number.POSITIVE_INFINITY
  const look = (node: ts.Node): void => {
    if (ts.isImportSpecifier(node) && node.name.text === name) value = ofImport(node, file)
    const isConstant = ts.isVariableDeclaration(node) && node.parent.flags & ts.NodeFlags.Const
    if (isConstant && node.name.getText(file) === name && node.initializer !== undefined)
      value = most(node.initializer, file)
    node.forEachChild(look)
  }
  look(file)
  return value
}

function ofImport(node: ts.ImportSpecifier, file: ts.SourceFile): number {
  const from = (node.parent.parent.parent.moduleSpecifier as ts.StringLiteral).text
  if (!from.startsWith('.')) return Number.POSITIVE_INFINITY
  return ofConstant(
    (node.propertyName ?? node.name).text,
    parsed(join(dirname(file.fileName), from.replace(/js$/, 'ts'))),
  )
}

/** Whether it stands where a longer one is left out: `ms > longestTimerMs ? undefined : setTimeout(due, ms)`. */
function isGuarded(call: ts.CallExpression, ms: ts.Expression, file: ts.SourceFile): boolean {
  const { parent } = call
  return (
    ts.isConditionalExpression(parent) &&
    parent.whenFalse === call &&
    parent.condition.getText(file) === `${ms.getText(file)} > longestTimerMs`
  )
}

function parsed(name: string, text = readFileSync(join(src, name), 'utf8')): ts.SourceFile {
  return ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
}

/** The timers of a text whose length has no bound, as `line: delay`. */
function unbounded(file: ts.SourceFile): string[] {
  const found: string[] = []
  const look = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && timers.has(node.expression.getText(file))) {
      const ms = node.arguments[node.expression.getText(file).startsWith('set') ? 1 : 0]
      // NaN is what infinite and 0 make.
      if (ms !== undefined && !(most(ms, file) <= longestMs) && !isGuarded(node, ms, file))
        found.push(`${file.fileName}:${file.getLineAndCharacterOfPosition(node.pos).line + 1}: ${ms.getText(file)}`)
    }
    node.forEachChild(look)
  }
  look(file)
  return found
}

describe('a timer', () => {
  it('is never set for longer than Node can wait', () => {
    // The tools for tests set timers as tests ask for them.
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.startsWith('store-testing/'),
    )
    expect(files.flatMap((file) => unbounded(parsed(file)))).toEqual([])
  })

  it.each([
    ['setTimeout(f, forMs)', 1],
    ['const forMs = 5\nsetTimeout(f, forMs)', 0],
    ['setTimeout(f, Math.min(forMs, 2 ** 31 - 1))', 0],
    ['setTimeout(f, Math.min(forMs, 2 ** 31 - 1) + 200)', 1],
    ['setTimeout(f, timerMs(forMs + 200))', 0],
    ['await delay(Math.max(1, forMs))', 1],
    ['await delay(random() * 500)', 0],
  ])('is judged by its length: %s', (text, count) => {
    expect(unbounded(parsed('a.ts', text))).toHaveLength(count)
  })
})
