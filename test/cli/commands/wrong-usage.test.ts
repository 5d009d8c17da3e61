import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../command-in-process.js'
import { runProcess } from '../command-process.js'
import { project } from '../project.js'

/** The arguments, and what the error must name: the thing that is wrong and the form that is expected. */
const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
  [['--nonsense'], /unknown option '--nonsense'/],
  [['wrok'], /unknown command 'wrok' \(Did you mean work\?\)/],
  [['retry', 'a'], /unknown command 'retry' \(Did you mean morgue revive\?\)/],
  [
    ['ls'],
    /unknown command 'ls' \(Did you mean one of jobs list, morgue list, queues list, schedules list, workers list\?\)/,
  ],
  [['cancel', 'a'], /unknown command 'cancel' \(Did you mean jobs cancel\?\)/],
  [['ps'], /unknown command 'ps' \(Did you mean workers\?\)/],
  [['jobs', 'ls'], /unknown command 'ls' \(Did you mean jobs list\?\)/],
  [['jobs', 'rm', 'default', 'a'], /unknown command 'rm' \(Did you mean jobs delete\?\)/],
  [['jobs', 'shwo', 'a'], /unknown command 'shwo' \(Did you mean jobs show\?\)/],
  [['workers', 'lst'], /too many arguments for 'list'/],
  [['work', '--concurency', '5'], /unknown option '--concurency' \(Did you mean --concurrency\?\)/],
  [['work', '--concurrency', 'many'], /'many' is invalid\. Expected a whole number from 1 to 100,000/],
  [['work', '--concurrency', '0'], /'0' is invalid\. Expected a whole number from 1/],
  [['work', '--concurrency', '1e3'], /Expected a whole number/],
  [['work', '--processes', '0'], /Expected a whole number from 1 to 256/],
  [['work', '--grace', 'long'], /'long' is invalid\. Expected a duration such as/],
  [['work', '--max-block', 'none'], /Expected a duration such as/],
  [['work', '--max-jobs', '0'], /Expected a whole number from 1/],
  [['work', '--max-rss', '512 mega'], /Expected a size such as '512MB' or '2GB'/],
  [['work', '--max-rss', '0'], /Expected a size such as '512MB'/],
  [['work', '--health-port', '65536'], /Expected a whole number from 0 to 65,535/],
  [['work', '--selector', 'fastest'], /'fastest' is invalid\. Allowed choices are random, .*reduced-lottery/],
  [['work', '--node', '2/2'], /'2\/2' is invalid\. Expected i\/n with i from 0 to n − 1, such as 0\/2/],
  [['work', '--node', '1'], /'1' is invalid\. Expected i\/n/],
  [['work', '--node', '-1/2'], /Expected i\/n|argument missing/],
  [['work', '--queues', 'default,,slow'], /Expected names with commas between them/],
  [['work', '--queues', 'default,nope'], /queue 'nope' is not declared.*declared are: default, slow/],
  [['work', '--queues', 'nope', '--processes', '2'], /queue 'nope' is not declared/],
  [['work', 'nowhere.ts'], /nowhere\.ts is not valid:\n {2}path: must be a TypeScript or JavaScript file/],
  [['work', 'a.ts', 'b.ts'], /too many arguments for 'work'\. Expected 1 argument but got 2/],
  [['stats', '--config', 'a.js', '--config', 'b.js'], /a\.js is not valid:\n {2}path: must be .* file; there is none/],
  [['work', '--config', 'nowhere.config.ts'], /nowhere\.config\.ts is not valid/],
  [['enqueue', 'greet'], /the input is missing: `millrace enqueue greet <json>`/],
  [['enqueue', 'echo', '{"n":'], /the input must be JSON, @file with JSON, or - for standard input; '\{"n":'/],
  [['enqueue', 'echo', '@nowhere.json'], /file 'nowhere\.json': ENOENT/],
  [['enqueue', 'nope', '1'], /task 'nope' is not declared.*declared are: echo, greet, fail, hold, /],
  [['enqueue', 'echo', '1', '--queue', 'nope'], /queue 'nope' is not declared/],
  [['enqueue', 'echo', '1', '--delay', 'soon'], /'soon' is invalid\. Expected a duration such as/],
  [['enqueue', 'echo', '1', '--delay', '-5s'], /Expected a duration|argument missing/],
  [['enqueue', 'echo', '1', '--run-at', 'tomorrow'], /runAt must be a valid Date or ISO-8601 text with a zone/],
  [['enqueue', 'echo', '1', '--delay', '1s', '--run-at', '2031-01-01T00:00:00Z'], /cannot be used with/],
  [['enqueue', 'echo', '1', '--priority', '32768'], /Expected a whole number from -32,768 to 32,767/],
  [['enqueue', 'echo', '1', '--id', ''], /id must be 1 to 256 bytes/],
  [['enqueue', 'echo', '1', '--meta', '[1]'], /meta must be a plain object/],
  [['enqueue', 'echo', '-', '--meta', '-'], /only one of <json> and --meta can be standard input/],
  [['enqueue', 'a\nb', '1', '--queue', 'slow'], /a task name must be 1 to 200 characters without control characters/],
  [['stats', 'default'], /too many arguments for 'stats'/],
  [['jobs', 'count', 'default'], /say which jobs: --state, --task.*`millrace stats` counts them all/],
  [['jobs', 'count', 'nope', '--state', 'ready'], /queue 'nope' is not declared/],
  [['jobs', 'count', '--state', 'lost'], /Allowed choices are waiting, scheduled, ready, running/],
  [['jobs', 'list', '--state', 'lost'], /Allowed choices are waiting, scheduled, ready, running/],
  [
    ['jobs', 'list', '--state', 'failed'],
    /'failed' is invalid\. Allowed choices are .*\. What others call failed is here dead\./,
  ],
  [['jobs', 'list', '--by', 'size'], /Allowed choices are id, time, retry/],
  [['jobs', 'list', '--limit', '201'], /Expected a whole number from 1 to 200/],
  [['jobs', 'list', 'nope'], /queue 'nope' is not declared/],
  [['jobs', 'list', '--cursor', 'x'], /--cursor goes on in one queue/],
  [['jobs', 'show'], /missing required argument 'id'/],
  [['jobs', 'frobnicate'], /unknown command 'frobnicate'/],
  [['morgue', 'revive', 'default'], /either their ids, --all, or what they are: --group/],
  [['morgue', 'delete', 'default', 'a', '--all'], /either their ids, --all, or what they are: --group/],
  [['morgue', 'revive', 'nope', '--all'], /queue 'nope' is not declared/],
  [['morgue', 'show', 'default'], /the id of the job is missing; it follows the queue 'default'/],
  [['morgue', 'show', 'nope', 'a'], /queue 'nope' is not declared/],
  [['morgue', 'revive', 'default', '--failed'], /unknown option '--failed'/],
  [['jobs', 'bury', 'default'], /either their ids, --all, --failed, or what they are: --group/],
  [['jobs', 'cancel', 'default', '--all', '--failed'], /either their ids, --all, --failed, or what they are: --group/],
  [['jobs', 'delete', 'default', 'x'.repeat(257)], /a job id must be 1 to 256 bytes/],
  [['jobs', 'run-now', 'nope', '--all'], /queue 'nope' is not declared/],
  [['jobs', 'fail', 'default'], /the id of the job is missing; it follows the queue 'default'/],
  [['jobs', 'fail', 'nope', 'a'], /queue 'nope' is not declared/],
  [['jobs', 'fields', 'default'], /the id of the job is missing/],
  [['jobs', 'cancel', 'nope', 'a'], /queue 'nope' is not declared/],
  [['jobs', 'cancel', 'x'.repeat(257)], /a job id must be 1 to 256 bytes/],
  [['jobs', 'fail', 'default', 'a', '--delay', 'soon'], /Expected a duration such as/],
  [['queues', 'frobnicate'], /unknown command 'frobnicate'/],
  [['queues', 'pause'], /missing required argument 'queue'/],
  [['queues', 'drain', 'nope'], /queue 'nope' is not declared/],
  [
    ['queues', 'reshard', 'default', 'many'],
    /'many' is invalid for argument 'shards'. Expected a whole number from 1 to 1,024/,
  ],
  [['queues', 'reshard', 'default', '0'], /Expected a whole number from 1 to 1,024/],
  [['queues', 'move', 'default'], /missing required argument 'new'/],
  [['queues', 'move', 'default', 'nope'], /queue 'nope' is not declared/],
  [['queues', 'throttle'], /missing required argument 'queue'/],
  [
    ['queues', 'throttle', 'default', '--set', '3'],
    /'3' is invalid\. Expected jobs\/time such as 3\/s, 300\/h or 10\/60s/,
  ],
  [['queues', 'throttle', 'default', '--elastic', '2'], /--elastic goes with --set/],
  [['queues', 'throttle', 'nope'], /queue 'nope' is not declared/],
  [['simulate', 'frobnicate'], /unknown command 'frobnicate'/],
  [['simulate', 'throttle', '--window', '1s'], /required option '--limit <n>' not specified/],
  [['import', 'frobnicate'], /unknown command 'frobnicate'/],
  [['import', 'kale'], /missing required argument 'settings'/],
  [['import', 'kale', 'nowhere.py'], /nowhere\.py: cannot be read: ENOENT/],
  [['doctor', 'default'], /too many arguments for 'doctor'/],
  [['fsck', 'default'], /too many arguments for 'fsck'/],
]

describe('a wrong command line', () => {
  it.each(mistakes)('%j is refused with exit code 2 and one clear error', async (args, message) => {
    const cwd = project()
    const { code, stdout, stderr } = await (args[0] === 'work' || args.includes('-') ? runProcess : run)(args, {
      cwd,
      input: '1',
    })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr.match(/millrace: /g)).toHaveLength(1)
    expect(stderr).not.toMatch(/\n {4}at /)
    expect(stderr.trimEnd().split('\n').length).toBeLessThanOrEqual(2)
    expect(await storedJobs(cwd)).toBe(0)
  })

  it('several processes are refused with a store that lives in one process', async () => {
    const cwd = project()
    const { code, stderr } = await runProcess(['work', '--processes', '2'], { cwd, env: { MILLRACE_STORE: 'memory:' } })
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'millrace: --processes needs a store that processes can share; memory: lives in one process only.\n',
    })
  })
})

/** Without its file, a store holds nothing. */
async function storedJobs(cwd: string): Promise<number> {
  if (!existsSync(join(cwd, 'jobs.db'))) return 0
  const { stdout } = await run('stats --json', { cwd })
  const { ready, scheduled, running, dead } = (JSON.parse(stdout) as { totals: Record<string, number> }).totals
  return ready! + scheduled! + running! + dead!
}
