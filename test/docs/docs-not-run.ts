/** Shell lines of the documentation that the tests do not run, each with its reason. */

export const notRun: readonly [RegExp, string][] = [
  [/^npm (init|install|pkg)\b/, 'needs the network; `npm run prove pack` does it'],
  [
    /^npx millrace init shop$|^cd shop$|^npm test$|^npx jiti (?:server|call-partners)\.ts$|^curl .*localhost:3000/,
    'test/docs/docs-tutorial.drill.ts goes through the tutorial, with a project as init writes it',
  ],
  [
    /^npx millrace (?:enqueue send-email .*no-address|enqueue export-orders|jobs (?:list|show export|cancel exports)|morgue list|schedules)/,
    'test/docs/docs-tutorial.drill.ts runs it, or the like',
  ],
  [/^npx millrace dash$/, 'test/cli/commands/dash.drill.ts runs it'],
  [/^sudo (?:cp|systemctl) /, 'needs a machine with systemd'],
  [/^docker /, 'needs Docker'],
  [/^(?:groupadd|install -d -m 2770) /, 'needs root; the case of a web server and a worker of two users does the like'],
  [
    /^MILLRACE_STORE=(?:redis|postgres):\S+ npx millrace (?:doctor|work)/,
    'needs a server at this address; the tests run both on their own',
  ],
  [
    /^MILLRACE_STORE=\S+ npx millrace (?:jobs list --envelope|enqueue - --envelope|jobs delete default --all --yes)/,
    'test/docs/docs-movers.test.ts runs them',
  ],
  [/^npm ci && npm run (demo|build)$/, 'needs the network; test/end-to-end runs the demo itself'],
  [/^npm ci && npm test$/, 'this test is part of it'],
  [/^MILLRACE_STORE=(postgres|redis|sqs):\S+ npm run demo$/, 'test/end-to-end runs the demo on each'],
  [/^MILLRACE_STORE=sqs:/, 'needs an account at AWS; test/cli/commands/sqs-commands.test.ts runs it on an emulator'],
  [/^npm run demo -- /, 'test/end-to-end runs the demo with a folder and --json'],
  [/^npm run bench\b/, 'takes minutes'],
  [/^node --test (?:sign-up|welcome)\.test\.mjs$/, 'test/testing/test-runners.drill.ts runs it'],
  [/^node --test shop\.test\.mjs$/, 'test/docs/docs-guides.drill.ts runs it'],
  [/^--[a-z]+$|^--[a-z]+=/, 'an option of the line before it'],
  [/^npx jiti (?:migration\/)?[a-z-]+\.ts\b/, 'test/end-to-end runs the examples'],
  [/^npx millrace .*\bATestWorker/, "test/end-to-end runs Lowkiq's example"],
  [/^cd examples\/(?:minimal|lowkiq|throttled-queue|blueque|kale)$/, 'test/end-to-end runs the examples'],
  [
    /^npx millrace (work(?: --create-queues)?|stats)$/,
    'test/end-to-end runs the examples, and test/docs/docs-next-job.test.ts a page',
  ],
  [/^millrace workers (stop|recycle) /, 'test/cli/commands/workers-commands.drill.ts orders workers that live'],
  [/^(?:node |NODE_OPTIONS=')--import \.\/otel\.js/, 'test/telemetry/whole-trace.drill.ts runs the like'],
  [/^curl /, 'test/web/endpoints.test.ts sends the like'],
  [/^millrace dash\b/, 'test/cli/commands/dash.drill.ts runs it'],
  [/^millrace exec video /, 'test/end-to-end runs exec'],
  [/^millrace enqueue nobody-knows-me /, 'must fail; run below, next to the programs that show an error'],
  [
    /^sqlite3 /,
    'the sqlite3 shell is no dependency; test/docs/docs-facts.test.ts runs the statement through the driver',
  ],
]
