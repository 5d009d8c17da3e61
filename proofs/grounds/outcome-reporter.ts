/** The outcome reporter: how every test ended, the skipped ones with their reasons, as JSON in the file of `OUTCOME_FILE`. */

import { writeFileSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

export interface Outcome {
  readonly files: number
  readonly passed: number
  readonly failed: readonly string[]
  /** By reason: how many. */
  readonly skipped: Readonly<Record<string, number>>
  /** What went wrong outside of a test: in a file that cannot be loaded, or in a hook. */
  readonly troubles: readonly string[]
}

export default class OutcomeReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly { readonly message: string }[]): void {
    const failed: string[] = []
    const skipped: Record<string, number> = {}
    let passed = 0
    for (const module of modules)
      for (const test of module.children.allTests()) {
        const result = test.result()
        if (result.state === 'passed') passed += 1
        else if (result.state === 'failed')
          failed.push(`${module.relativeModuleId}: ${test.fullName}: ${result.errors[0]?.message}`)
        else {
          const reason = (result.state === 'skipped' ? result.note : 'it did not end') ?? 'no reason is given'
          skipped[reason] = (skipped[reason] ?? 0) + 1
        }
      }
    const ofModules = modules.flatMap((module) => module.errors().map(({ message }) => message))
    const troubles = [...ofModules, ...unhandled.map(({ message }) => message)]
    const outcome: Outcome = { files: modules.length, passed, failed, skipped, troubles }
    writeFileSync(process.env['OUTCOME_FILE']!, JSON.stringify(outcome))
  }
}
