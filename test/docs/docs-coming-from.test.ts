/** The pages of those who come from another queue, against the names of its documentation and its code. */

import { describe, expect, it } from 'vitest'
import { kaleSettings } from '#src/cli/commands/import/kale-settings.js'
import { selectorNames } from '#src/selectors/named-selectors.js'
import { Document, plain } from './document.js'
import { membersOf } from './interface-members.js'

const pageOf = (name: string) => new Document(`docs/coming-from/${name}.md`)
const [blueque, kale, lowkiq] = [pageOf('blueque'), pageOf('kale'), pageOf('lowkiq')]
const throttledQueue = pageOf('redis-throttled-queue')

/** Every method and attribute of Blueque's README, and what its code has beyond. */
const bluequeNames = `
Client get_queue enqueue schedule enqueue_due_tasks delete_task get_task get_listener listen on_new_task claim_orphan
get_processor start complete fail ForkingRunner
id status queue parameters result error node pid created updated eta reclaimed_node
scheduled pending reserved started complete succeeded failed
MULTI WATCH RPOPLPUSH HMSET
`

/** Every method, hook, setting, option and environment variable of Kale's READMEs, and what its code has beyond. */
const kaleNames = `
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

/** Every parameter, method, class, flag and line of RedisThrottledQueue's documentation, and what its code has beyond. */
const throttledQueueNames = `
redisConn myQueue throttleWindow throttleLimit moderate moderation windowName modName elastic elastic_buffer
push pop clear __len__ len None RedisPriorityQueue RedisQueue RedisStack
example_rtq.py -r --redis-host -p --redis-port -m --moderate -w --window -n --num-hits -q --queue -e --elastic testqueue
encoding pickle allowed throttle_window throttle_time WATCH MULTI EXEC
QUEUE_HITS QUEUE_WINDOW QUEUE_MODERATED
`

/**
 * Every name in Lowkiq's README: methods, options, attributes, commands, variables, keys. And what it has beyond: keys in
 * Redis, web actions, numbers, hooks.
 */
const lowkiqNames = `
Lowkiq::Worker shards_count batch_size max_retry_count queue_name retry_in retries_exhausted perform perform_async super
job[:error] payloads_by_id id payload payloads score perform_in retry_count morgue
Lowkiq.workers Lowkiq.poll_interval Lowkiq.threads_per_node Lowkiq.redis Lowkiq.client_pool_size Lowkiq.pool_timeout
Lowkiq.server_middlewares Lowkiq.client_middlewares Lowkiq.on_server_init Lowkiq.build_scheduler Lowkiq.build_lag_scheduler
Lowkiq.build_seq_scheduler Lowkiq.build_splitter Lowkiq.build_default_splitter Lowkiq.build_by_node_splitter Lowkiq.last_words
Lowkiq.dump_payload Lowkiq.load_payload Marshal Lowkiq.format_error Lowkiq.dump_error Lowkiq.load_error Lowkiq.dump
REDIS_URL hiredis driver Gemfile gem Redis
ATestWorker ATestMigrationWorker ATestWorker_V2 lowkiq -r require require_dependency bundle path_to_app
TERM INT Ctrl-C TTIN lowkiq_ttin.txt StandardError docker-compose rspec examples/dummy
Lowkiq::Web mount routes.rb initializers/lowkiq.rb LOWKIQ_REDIS_URL LOWKIQ_THREADS_PER_NODE LOWKIQ_CLIENT_POOL_SIZE
LOWKIQ_NUMBER_OF_NODES LOWKIQ_NODE_NUMBER to_prepare Rails.logger tagged Raven.capture NewRelicLowkiqMiddleware
Rails.application.reloader ActiveRecord::Base establish_connection /api/v1/stats
all_ids_lex all_ids_scored_by_perfrom_in ids_scored_by_perform_in:<shard> all_ids_scored_by_retry_count payloads:<id> errors
processing_length_by_shard processing:ids_with_perform_in:<shard> processing:ids_with_retry_count:<shard>
processing:payloads:<id> processing:errors:<shard> morgue:all_ids_lex morgue:all_ids_scored_by_updated_at
morgue:payloads:<id> morgue:errors processed failed fresh retries length morgue_length lag busy
range_by_id range_by_perform_in range_by_retry_count rev_range_by_ morgue_range_by_id morgue_range_by_updated_at
processing_data morgue_delete morgue_queue_up morgue_queue_up_all_jobs morgue_delete_all_jobs perform_all_jobs_now
kill_all_failed_jobs delete_all_failed_jobs /api/web/dashboard client_queue client_queries client_actions
`

/** `fewest`: the rows that a page has at least. */
const pages: readonly { of: string; page: Document; names: string; fewest: number }[] = [
  { of: 'Blueque', page: blueque, names: bluequeNames, fewest: 65 },
  { of: 'Kale', page: kale, names: kaleNames, fewest: 60 },
  { of: 'Lowkiq', page: lowkiq, names: lowkiqNames, fewest: 100 },
  { of: 'RedisThrottledQueue', page: throttledQueue, names: throttledQueueNames, fewest: 45 },
]

describe.each(pages)('the page for users of $of', ({ page, names, fewest }) => {
  const rows = page.tables.flatMap((table) => table.rows)
  const left = rows.map(([was]) => was!).join('\n')

  it('says what replaces every name in its documentation', () => {
    const isNamed = (name: string) => {
      const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
      const text = page === throttledQueue ? besideTables(name, left) : left
      return new RegExp(`(?<!${page === lowkiq ? '\\w' : '[\\w-]'})${escaped}(?![a-z_])`).test(text)
    }
    const all = names.split(/\s+/).filter((name) => name !== '')

    expect(all.filter((name) => !isNamed(name))).toEqual([])
  })

  it('has in each row a counterpart, or the reason for its absence', () => {
    expect(rows.length).toBeGreaterThan(fewest)
    expect(rows.filter((row) => row.length < 2 || row.some((cell) => cell === ''))).toEqual([])
  })
})

/** RedisThrottledQueue's page explains names in its programs too, and the example in its prose. */
function besideTables(name: string, left: string): string {
  const text = [left, ...throttledQueue.blocks.map((block) => block.text)].join('\n')
  return name === 'example_rtq.py' ? `${text}\n${throttledQueue.prose}` : text.replaceAll(':throttle', ' throttle')
}

describe('the page for users of Blueque', () => {
  it('has every key, and every state next to its own name', () => {
    const states = ['pending', 'reserved', 'scheduled', 'started', 'complete', 'failed']
    const keys = [...states.map((state) => `${state}_tasks_[queue]`), 'task_[id]', 'tasks_[queue]', 'listeners_[queue]']
    const told = blueque.rows('Keys').map(([was]) => plain(was!))
    for (const key of [...keys, 'queues']) expect(told.join('\n')).toContain(`blueque_${key}`)
    const now = Object.fromEntries(blueque.rows('States').map(([was, now]) => [plain(was!), plain(now!)]))
    for (const [was, is] of Object.entries({ pending: 'ready', failed: 'dead', scheduled: 'scheduled' }))
      expect(now[was]).toMatch(new RegExp(`^${is}`))
  })

  it('names every option of a listener, and every method of a claim', () => {
    const right = blueque.tables.flatMap(({ rows }) => rows.map(([, now]) => plain(now!))).join('\n')
    const members = [
      ...membersOf('mill/options/listener-options.ts', 'ListenerOptions'),
      ...membersOf('workers/listener/listener-claim.ts', 'ListenerClaim'),
    ]
    expect(members.map(({ name }) => name).filter((name) => !new RegExp(`\\b${name}\\b`).test(right))).toEqual([])
  })
})

describe('the page for users of Kale', () => {
  it('names the variable with the settings, and existing selectors', () => {
    expect(kale.prose).toContain('KALE_SETTINGS_MODULE')
    const told = kale.rows('Selectors').map(([, now]) => plain(now!))
    expect(told.slice(0, -1).filter((name) => !(selectorNames as readonly string[]).includes(name))).toEqual([])
  })

  it('covers every setting that `import kale` knows, and no other', () => {
    const settings = (text: string) => text.match(/\b[A-Z][A-Z_]{5,}\b/g) ?? []
    const told = new Set([...kale.rows('Settings').flatMap(([was]) => settings(was!)), ...settings(kaleNames)])
    // Of a task, not of the settings; and a name for the key of the cipher in older versions.
    const [ofTasks, older] = [['EXCEPTION_LIST'], ['UTIL_CRYPT_KEY']]

    expect([...told].filter((name) => !ofTasks.includes(name)).sort()).toEqual(
      [...kaleSettings].filter((name) => !older.includes(name)).sort(),
    )
  })
})

describe('the page for users of RedisThrottledQueue', () => {
  it('names every existing option and reason', () => {
    const options = membersOf('workers/throttled-queue.ts', 'ThrottledQueueOptions').map(({ name }) => name)
    const right = throttledQueue.rows('The constructor').map(([, now]) => plain(now!))

    expect(options.filter((option) => !right.some((cell) => new RegExp(`\\b${option}\\b`).test(cell)))).toEqual([])
    for (const reason of ['empty', 'throttled', 'scheduled', 'full', 'paused'])
      expect(throttledQueue.codeSpans).toContain(`'${reason}'`)
  })
})
