/** What axe finds on a page. */

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Violation {
  readonly id: string
  readonly nodes: readonly { readonly html: string }[]
}

/** In a world of its own, to which the policy of the page does not apply. */
export async function violations(page: Page): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
  })
  await session.send('Runtime.evaluate', { contextId, expression: axe })
  const { result } = await session.send('Runtime.evaluate', {
    ...{ contextId, awaitPromise: true, returnByValue: true },
    expression: 'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)',
  })
  return (result.value as Violation[]).map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(' | ')}`,
  )
}
