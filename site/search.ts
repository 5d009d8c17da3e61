/** The search of the site: what is found, and what comes first. It is VitePress' own, in the browser, with no server. */

import type { DefaultTheme } from 'vitepress'

/** Words that readers look for and a page does not say, by its path below `docs/`. */
export const alsoFoundBy: Readonly<Record<string, string>> = {
  'configuration.md': 'retry retries backoff attempts',
  'crashes.md': 'lost job, stalled job, dead worker, exactly once',
  'dashboard.md': 'dashboard password, login, token, authentication, admin interface',
  'graceful-deploys.md': 'graceful shutdown, SIGTERM, restart',
  'job-lifecycle.md': 'retry, delay, idempotent, idempotency, unique jobs, deduplication, priority',
  'throttling.md': 'rate limit, rate limiter, concurrency limit, throttle per tenant',
  'types.md': 'TypeScript types, type inference, generics',
}

/** Pages of the API that only authors of stores need. */
const isForStores = /^api\/millrace\/store/

export const search: { provider: 'local'; options: DefaultTheme.LocalSearchOptions } = {
  provider: 'local',
  options: {
    _render(text, env, markdown) {
      const page = String(env.relativePath)
      if (isForStores.test(page)) return ''
      const html = markdown.render(text, env)
      const words = alsoFoundBy[page]
      return words === undefined ? html : html.replace('</h1>', `</h1><p>${words}</p>`)
    },
    miniSearch: {
      searchOptions: {
        // It is run in the browser, and sees nothing of this file. Members of types are last, or they would fill the list.
        // Pages about one error come after the pages that explain its subject.
        boostDocument: (id: string) =>
          id.includes('/api/') ? 0.1 : /\/(?:coming-from|troubleshooting)\//.test(id) ? 0.4 : 1,
      },
    },
  },
}
