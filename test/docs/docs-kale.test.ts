/** The page of those who come from Kale, against the names of its READMEs and its code. */

import { describe, expect, it } from 'vitest'
import { kaleSettings } from '#src/cli/commands/import/kale-settings.js'
import { selectorNames } from '#src/selectors/named-selectors.js'
import { Document, plain } from './document.js'

const page = new Document('docs/coming-from/kale.md')

/** Every method, hook, setting, option and environment variable of its READMEs, and what its code has beyond. */
const names = `
run_task publish app_data delay_sec InvalidTaskDelayException InvalidTimeLimitTaskException ChubbyTaskException _get_task_id
max_retries time_limit target_runtime _retry_delay_multiple queue EXCEPTION_LIST BlacklistedException
_setup_task_environment _pre_run _check_blacklist _post_run _alert_runtime_exceeded _clean_task_environment _dequeued
should_run_task _kill_runtime_exceeded _report_permanent_failure handle_failure republish _get_delay_sec_for_retry retry_num
failure_num TimeoutException Worker select_queue get_messages
_on_pre_run_worker _on_exceeding_memory_limit _on_sigtstp _on_shutdown _on_pre_batch_run _on_post_batch_run
_on_permanent_failure_batch _on_task_deferred _on_task_failed _on_task_succeeded _run_batch
DeleteMessagesException SendMessagesException ChangeMessagesVisibilityException
SelectQueueBase get_queue Random Lottery HighestPriorityFirst HighestPriorityLottery LotteryLottery ReducedLottery
ON_WORKER_STARTUP ON_WORKER_SHUTDOWN TASK_MAPPER COMPRESSOR DECOMPRESSOR MESSAGE_QUEUE_ENDPOINT_URL
MESSAGE_QUEUE_USE_PROXY MESSAGE_QUEUE_PROXY_HOST MESSAGE_QUEUE_PROXY_PORT AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION
SQS_TASK_SIZE_LIMIT SQS_QUEUE_TAG_FUNCTION RETRY_DELAY_MULTIPLE_SEC SQS_MAX_TASK_DELAY_SEC TIMESTAMP_FUNC PUBLISHER_STR_FUNC
RESET_TIMEOUT_THRESHOLD USE_DEAD_LETTER_QUEUE ENABLE_DEAD_LETTER_QUEUE QUEUE_CONFIG QUEUE_CLASS QUEUE_SELECTOR
DIE_ON_RESIDENT_SET_SIZE_MB UTIL_CRYPT_CIPHER PICKLE_PROTOCOL _decorate_name encrypt decrypt
name priority batch_size visibility_timeout_sec long_poll_time_sec num_iterations
`

describe('the page for users of Kale', () => {
  const rows = page.tables.flatMap((table) => table.rows)
  const left = rows.map(([was]) => was!).join('\n')

  it("says what replaces every name in Kale's documentation", () => {
    const isNamed = (name: string) => new RegExp(`(?<![\\w-])${name}(?![a-z_])`).test(left)
    const all = names.split(/\s+/).filter((name) => name !== '')
    expect(all.filter((name) => !isNamed(name))).toEqual([])
    expect(page.prose).toContain('KALE_SETTINGS_MODULE')
  })

  it('has in each row a counterpart, or the reason for its absence', () => {
    expect(rows.length).toBeGreaterThan(60)
    expect(rows.filter((row) => row.length < 2 || row.some((cell) => cell === ''))).toEqual([])
  })

  it('names existing selectors', () => {
    const told = page.rows('Selectors').map(([, now]) => plain(now!))
    expect(told.slice(0, -1).filter((name) => !(selectorNames as readonly string[]).includes(name))).toEqual([])
  })
  it('covers every setting that `import kale` knows, and no other', () => {
    const settings = (text: string) => text.match(/\b[A-Z][A-Z_]{5,}\b/g) ?? []
    const told = new Set([...page.rows('Settings').flatMap(([was]) => settings(was!)), ...settings(names)])
    // Of a task, not of the settings; and a name for the key of the cipher in older versions.
    const [ofTasks, older] = [['EXCEPTION_LIST'], ['UTIL_CRYPT_KEY']]

    expect([...told].filter((name) => !ofTasks.includes(name)).sort()).toEqual(
      [...kaleSettings].filter((name) => !older.includes(name)).sort(),
    )
  })
})
