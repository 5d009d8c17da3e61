/** A confirmation: the question before an action destroys things that nobody listed by name. Only a person is asked. */

import { createInterface } from 'node:readline'
import { OperationError } from '../process/exit-code.js'

interface Prompt {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean }
}

/**
 * Resolves if the answer is `y` or `yes`. Asks nothing without a terminal, or if `yes` was given. It asks on stderr,
 * because a program may read stdout. Throws `OperationError` for every other answer, and if the person leaves.
 */
export async function confirm(
  question: () => Promise<string>,
  { yes = false, json = false }: { readonly yes?: boolean; readonly json?: boolean },
  { input, output }: Prompt = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (yes || json || input.isTTY !== true || output.isTTY !== true) return
  const words = await question()
  const asking = createInterface({ input, output })
  const answer = await new Promise<string | undefined>((resolve) => {
    asking.once('line', resolve)
    asking.once('close', () => resolve(undefined))
    asking.setPrompt(`${words} [y/N] `)
    asking.prompt()
  })
  asking.close()
  // The error must not be on the line of the question.
  if (answer === undefined) output.write('\n')
  if (!/^y(?:es)?$/i.test(answer?.trim() ?? '')) throw new OperationError('not confirmed; nothing was changed.')
}
