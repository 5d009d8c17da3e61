/**
 * Sets of payloads in the database: the rules of `rules/payloads`, for rows that are merged when they are read. A set is the
 * rows of a head that are not in hand.
 */

import { sqlFunction } from '../schema/sql-function.js'

/**
 * The rows of sets, each with `stays`: false for one that another replaces. `rows`: what follows FROM, with `p` for the table
 * of payloads. `latest`: whether only the latest is to stay, even of payloads that came before that was the rule. `set`: the
 * columns of `p` that name a set.
 *
 * Of equal ones the first in order stays. Of those up to the last that came when only the latest was to be kept, the last in
 * order stays.
 */
export function payloadSets(rows: string, latest = 'false', set = 'p.head'): string {
  return `SELECT *, nth = 1 AND (last_at IS NULL OR seq > last_at
      OR row_number() OVER (PARTITION BY ${set.replaceAll('p.', '')}, nth = 1 AND seq <= last_at ORDER BY score DESC, seq DESC) = 1) AS stays
    FROM (SELECT p.*, row_number() OVER (PARTITION BY ${set}, p.digest ORDER BY p.score, p.seq) AS nth,
        max(CASE WHEN p.latest OR ${latest} THEN p.seq END) OVER (PARTITION BY ${set}) AS last_at FROM ${rows}) r`
}

/**
 * Takes a head, its payloads in hand or null, and whether only the latest is to stay. Removes the others; returns how many stay. An
 * earlier rule has been followed then: it must not merge these with what joins them.
 */
const mergeSet = sqlFunction(
  'merge_1',
  'p_head bigint, p_hand bigint[], p_latest boolean',
  'int',
  `DECLARE k int;
BEGIN
  WITH s AS (${payloadSets("@.payload p WHERE head = p_head AND NOT seq = ANY (coalesce(p_hand, '{}'))", 'p_latest')}),
  d AS (DELETE FROM @.payload WHERE head = p_head AND seq IN (SELECT seq FROM s WHERE NOT stays))
  SELECT count(*) INTO k FROM s WHERE stays;
  IF NOT p_latest THEN
    UPDATE @.payload SET latest = false WHERE head = p_head AND latest AND NOT seq = ANY (coalesce(p_hand, '{}'));
  END IF;
  RETURN k;
END`,
)

/** Takes a shard. Returns the number of its waiting payloads, including those behind running jobs. */
const countPending = sqlFunction(
  'pending_1',
  'p_q int',
  'bigint',
  `BEGIN
  RETURN (SELECT coalesce(sum(c.n), 0) FROM @.job j CROSS JOIN LATERAL (SELECT count(*) AS n FROM
      (${payloadSets("@.payload p WHERE p.head = j.head AND NOT p.seq = ANY (coalesce(j.hand, '{}'))")}) s WHERE stays) c
    WHERE j.qid = p_q);
END`,
)

export const payloadFunctions = [mergeSet, countPending]
