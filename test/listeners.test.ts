import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, it } from 'vitest'

const listening = new Set(['on', 'once', 'addListener', 'prependListener', 'addEventListener'])
const timers = new Set(['setTimeout', 'setInterval', 'setImmediate'])

interface Found {
  readonly where: string
  readonly text: string
}

/** Calls in listeners of events and timers whose promise nobody holds, and whose function does not say that it never rejects. */
function unheld(file: string): { readonly listeners: number; readonly found: readonly Found[] } {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const never = new Set<string>()
  const listeners: ts.Node[] = []
  const named = new Map<string, ts.Node>()
  const visit = (node: ts.Node): void => {
    const isNamed = ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isVariableStatement(node)
    if (isNamed) {
      const name = ts.isVariableStatement(node)
        ? node.declarationList.declarations[0]!.name.getText()
        : (node.name?.getText() ?? '')
      named.set(name, node)
      const comment = source.text.slice(node.getFullStart(), node.getStart())
      if (/[Nn]ever rejects/.test(comment)) never.add(name)
    }
    if (ts.isCallExpression(node)) {
      const { expression } = node
      const name = ts.isPropertyAccessExpression(expression) ? expression.name.text : expression.getText()
      const isTimer = ts.isIdentifier(expression) && timers.has(name)
      const isEvent = ts.isPropertyAccessExpression(expression) && listening.has(name)
      if (isTimer || isEvent)
        listeners.push(...node.arguments.filter((one) => ts.isArrowFunction(one) || ts.isFunctionExpression(one)))
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  const found: Found[] = []
  const say = (node: ts.Node) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart())
    found.push({ where: `${file}:${line + 1}`, text: node.getText().split('\n')[0]! })
  }
  for (const listener of listeners) {
    const isAsync = ts
      .getModifiers(listener as ts.ArrowFunction)
      ?.some(({ kind }) => kind === ts.SyntaxKind.AsyncKeyword)
    if (isAsync) say(listener)
    const look = (node: ts.Node): void => {
      // What is made here is called by others.
      if (node !== listener && ts.isFunctionLike(node) && listeners.includes(node)) return
      if (ts.isVoidExpression(node) && ts.isCallExpression(node.expression)) {
        const { expression } = node.expression
        const name = ts.isPropertyAccessExpression(expression) ? expression.name.getText() : expression.getText()
        const isHandled = name === 'catch' || (name === 'then' && node.expression.arguments.length === 2)
        const isOwn =
          !ts.isPropertyAccessExpression(expression) || expression.expression.kind === ts.SyntaxKind.ThisKeyword
        if (!isHandled && !(isOwn && never.has(name)) && !isKnown(name)) say(node)
      }
      ts.forEachChild(node, look)
    }
    look(listener)
  }
  return { listeners: listeners.length, found }
}

/** Of other files, each of which says there that it never rejects. */
const elsewhere = new Map([
  ['say', 'src/runtime/line-channel.ts'],
  ['tick', 'src/runtime/leases/lease-beats.ts'],
])

function isKnown(name: string): boolean {
  // Node's: it resolves however the thread has ended.
  if (name === 'terminate') return true
  const file = elsewhere.get(name)
  return file !== undefined && /Never rejects/.test(readFileSync(file, 'utf8'))
}

it('a promise in a listener or timer never rejects unhandled', {
  timeout: 120_000,
}, () => {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !file.startsWith('store-testing'),
  )
  const all = files.map((file) => unheld(join('src', file)))
  expect(all.reduce((sum, { listeners }) => sum + listeners, 0)).toBeGreaterThan(100)
  expect(all.flatMap(({ found }) => found)).toEqual([])
})
