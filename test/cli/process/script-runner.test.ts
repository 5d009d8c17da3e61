import { expect, it } from 'vitest'
import { isInShellOfRunner } from '#src/cli/process/script-runner.js'

const shellOf = (script: string) => `sh\0-c\0${script}\0`

it.each([
  ['millrace work', shellOf('millrace work')],
  ['millrace work', shellOf("millrace work --queues 'a b'")],
  ["'millrace'", shellOf("'millrace' work")],
  ['tsc && millrace work > out.log 2>&1', shellOf('tsc && millrace work > out.log 2>&1')],
  ['millrace work', ''],
])('a command of the script %s, in the shell %j, ends with its runner', (script, cmdline) => {
  expect(isInShellOfRunner(script, 100, cmdline)).toBe(true)
})

it.each([
  ['without a runner', undefined, 100, shellOf('millrace work')],
  ['in the background', 'millrace work & node server.js', 100, shellOf('millrace work & node server.js')],
  ['whose shell has ended', 'millrace work', 1, ''],
  ['that nohup has started', 'nohup millrace work', 100, shellOf('nohup millrace work')],
  ['that setsid has started', 'setsid millrace work', 100, shellOf('setsid millrace work')],
  ['of a process manager that a script has started', 'pm2 start millrace', 100, 'PM2 v6: God Daemon\0'],
  ['of a shell script that a script has started', './deploy.sh', 100, 'sh\0./deploy.sh\0'],
  ['of another shell', './deploy.sh', 100, shellOf('millrace work')],
] as const)('a command %s does not end with it', (_, script, shell, cmdline) => {
  expect(isInShellOfRunner(script, shell, cmdline)).toBe(false)
})
