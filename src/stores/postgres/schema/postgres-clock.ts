/** The clock of a Postgres store: two functions of the database. A harness replaces them; no other text reads a clock. */

/**
 * `us()`: the instant in µs since 1970, on the clock of the server. `run()`: when the server was started, in ms, which names
 * its present run.
 */
export const clock = `
CREATE FUNCTION @.us() RETURNS bigint LANGUAGE sql VOLATILE AS $fn$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint $fn$;
CREATE FUNCTION @.run() RETURNS bigint LANGUAGE sql STABLE AS $fn$
  SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint $fn$;
`
