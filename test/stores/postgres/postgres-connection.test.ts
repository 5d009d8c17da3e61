import { readFileSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { postgresAddress } from '#src/stores/postgres/client/postgres-address.js'
import { PostgresConnection } from '#src/stores/postgres/client/postgres-connection.js'
import { endBackend } from '#src/stores/postgres/client/postgres-session.js'
import { postgresDatabase } from '../../worker-postgres.js'

let url: string
const opened: PostgresConnection[] = []

beforeAll(async () => {
  url = await postgresDatabase()
}, 60_000)
afterAll(async () => {
  for (const connection of opened) await connection.close()
})

function connectionTo(address = url): PostgresConnection {
  const connection = new PostgresConnection(postgresAddress(address), 'jobs')
  opened.push(connection)
  return connection
}

/** A socket whose server says goodbye in the packet of its first answer, as if an administrator had ended the connection. */
function endedWithFirstAnswer(): Socket {
  const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
  const length = Buffer.alloc(4)
  length.writeInt32BE(fields.length + length.length)
  const goodbye = Buffer.concat([Buffer.from('E'), length, fields])
  const socket = new Socket()
  const emit = socket.emit.bind(socket) as (event: string, ...values: unknown[]) => boolean
  socket.emit = (event: string, ...values: unknown[]) => {
    const [chunk] = values
    if (event !== 'data' || !(chunk as Buffer).includes('pg_is_in_recovery')) return emit(event, ...values)
    return emit(event, Buffer.concat([chunk as Buffer, goodbye]))
  }
  return socket
}

const isUnavailable = (inDoubt: boolean) => expect.objectContaining({ code: 'store-unavailable', inDoubt })

describe('a connection to Postgres', () => {
  it('sends the statements of a tick together, each with an answer or an error of its own', async () => {
    const connection = connectionTo()

    const answers = await Promise.allSettled([
      connection.query('SELECT $1::int', [1]),
      connection.query('SELECT nothing($1)', [2]),
      connection.query('SELECT $1::int', [3]),
    ])

    expect(answers.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.code))).toEqual([
      [[1]],
      'store-corrupt',
      [[3]],
    ])
  })

  it('leaves a call in doubt if its connection is cut before the answer, and connects again', async () => {
    const connection = connectionTo()
    const [[pid]] = (await connection.query('SELECT pg_backend_pid()', [])) as [[number]]
    const cut = expect(connection.query('SELECT pg_sleep(30)', [])).rejects.toEqual(isUnavailable(true))
    await connectionTo().query('SELECT pg_terminate_backend($1)', [pid])

    await cut
    expect(await connection.query('SELECT 1', [])).toEqual([[1]])
  })

  it('carries out nothing that it has given up, once it has connected again', async () => {
    const watcher = connectionTo()
    await watcher.query('CREATE TABLE public.late (n int)', [])
    const connection = new PostgresConnection(postgresAddress(url), 'jobs', undefined, 1_000)
    opened.push(connection)
    const [[pid]] = (await connection.query('SELECT pg_backend_pid()', [])) as [[number]]
    const lost = [
      connection.query('SELECT pg_sleep(4)', []),
      connection.query('INSERT INTO public.late VALUES (1)', []),
    ]
    for (const one of lost) await expect(one).rejects.toEqual(isUnavailable(true))

    expect(await connection.query('SELECT count(*)::int FROM public.late', [])).toEqual([[0]])
    const isThere = () => watcher.query('SELECT pid FROM pg_stat_activity WHERE pid = $1', [pid])
    await expect.poll(isThere, { timeout: 10_000 }).toEqual([])
    expect(await connection.query('SELECT count(*)::int FROM public.late', [])).toEqual([[0]])
  })

  it('stays connected if the server answers one call with an error that leaves it in doubt', async () => {
    const connection = connectionTo()
    const before = await connection.query('SELECT pg_backend_pid()', [])
    const failing = `DO $$ BEGIN RAISE EXCEPTION 'no disk' USING ERRCODE = 'io_error'; END $$`
    const failed = expect(connection.query(failing)).rejects.toEqual(isUnavailable(true))
    const beside = connection.query('SELECT pg_backend_pid()', [])

    await failed
    expect(await beside).toEqual(before)
    expect(await connection.query('SELECT pg_backend_pid()', [])).toEqual(before)
  })

  it('ends neither a client of another role nor a process of the server itself in place of one that it has lost', async () => {
    const watcher = connectionTo()
    const role = `stranger_${process.pid}`
    await watcher.query(`CREATE ROLE ${role} LOGIN`, [])
    await connectionTo(url.replace('postgres@', `${role}@`)).query('SELECT 1', [])
    // The launcher has the role of the watcher.
    const text = `SELECT pid FROM pg_stat_activity WHERE usename = $1 OR backend_type = 'logical replication launcher' ORDER BY 1`
    const others = async () => (await watcher.query(text, [role])).flat()
    const before = await others()
    expect(before).toHaveLength(2)
    const [[now]] = (await watcher.query(`SELECT date_part('epoch', now())`, [])) as [[number]]

    for (const pid of before) expect(await watcher.query(endBackend, [pid, now])).toEqual([])
    expect(await others()).toEqual(before)
  })

  it('connects again if the server ends a connection together with its first answer', async () => {
    let sockets = 0
    const stream = () => {
      sockets += 1
      return sockets === 1 ? endedWithFirstAnswer() : new Socket()
    }
    const connection = new PostgresConnection({ ...postgresAddress(url), stream }, 'jobs')
    opened.push(connection)

    expect(await connection.query('SELECT 1', [])).toEqual([[1]])
    expect(sockets).toBe(2)
  })

  it('tries the hosts of its address in turn', async () => {
    const connection = connectionTo(url.replace('@', '@127.0.0.1:1,'))

    expect(await connection.query('SELECT 1', [])).toEqual([[1]])
  })

  it('refuses a call after two seconds if no server answers, and nothing is in doubt', async () => {
    const connection = connectionTo('postgres://postgres@127.0.0.1:1/postgres')

    await expect(connection.query('SELECT 1', [])).rejects.toEqual(isUnavailable(false))
  })

  it('asks again for a password that is refused, if one was accepted before', async () => {
    const role = `renewed_${process.pid}`
    const watcher = connectionTo()
    await watcher.query(`CREATE ROLE ${role} LOGIN PASSWORD 'first'`, [])
    const hba = (await watcher.query('SHOW hba_file', []))[0]![0] as string
    const kept = readFileSync(hba, 'utf8')
    onTestFinished(async () => {
      writeFileSync(hba, kept)
      await watcher.query('SELECT pg_reload_conf()', [])
    })
    writeFileSync(hba, `host all ${role} all scram-sha-256\n${kept}`)
    await watcher.query('SELECT pg_reload_conf()', [])
    const passwords = ['first', 'first', 'second']
    const password = () => passwords.shift() ?? 'second'
    const connection = new PostgresConnection({ ...postgresAddress(url), user: role, password }, 'jobs')
    opened.push(connection)
    const [[pid]] = (await connection.query('SELECT pg_backend_pid()', [])) as [[number]]
    await watcher.query(`ALTER ROLE ${role} PASSWORD 'second'`, [])
    await watcher.query('SELECT pg_terminate_backend($1, 5000)', [pid])

    const codes: unknown[] = []
    await expect.poll(() => connection.query('SELECT 1', []).catch(({ code }) => codes.push(code))).toEqual([[1]])
    expect(codes).not.toContain('store-refused')
    expect(passwords).toEqual([])
  })

  it('names a database that is missing', async () => {
    const connection = connectionTo(url.replace(/\w+$/, 'missing'))

    await expect(connection.query('SELECT 1', [])).rejects.toMatchObject({ code: 'config-invalid' })
  })

  it('hears notifications, and says when some may have been lost', async () => {
    const connection = connectionTo()
    const heard: unknown[] = []
    let hear = () => {}
    const next = () => new Promise<void>((resolve) => (hear = resolve))
    await connection.listen('bell', (channel, payload) => {
      heard.push([channel, payload])
      hear()
    })
    const first = next()
    await connectionTo().query("SELECT pg_notify('bell', 'one')", [])
    await first
    const [[pid]] = (await connection.query('SELECT pg_backend_pid()', [])) as [[number]]
    await connectionTo().query('SELECT pg_terminate_backend($1)', [pid])
    const lost = next()
    await expect.poll(() => connection.query('SELECT 1', []).catch(() => undefined)).toEqual([[1]])
    await lost
    const last = next()
    await connectionTo().query("SELECT pg_notify('bell', 'two')", [])
    await last

    expect(heard).toEqual([
      ['bell', 'one'],
      [undefined, undefined],
      ['bell', 'two'],
    ])
  })

  it('refuses calls once it is closed', async () => {
    const connection = connectionTo()
    await connection.query('SELECT 1', [])
    const underWay = expect(connection.query('SELECT pg_sleep(30)', [])).rejects.toMatchObject({ code: 'closed' })
    await connection.close()

    await underWay
    await expect(connection.query('SELECT 1', [])).rejects.toMatchObject({ code: 'closed' })
  })
})
