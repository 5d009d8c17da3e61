/** The test grounds: every server, Node, file system and TypeScript that the tests are run on, with the files that tell it apart. */

import type { DebianRelease } from '../../test/stores/debian-server.js'
import type { VolumeKind } from './test-volume.js'

export type GroundPart = 'Redis and Valkey' | 'PostgreSQL' | 'Node' | 'File systems for SQLite' | 'TypeScript'

/** What a part leaves open is this machine's own. */
export interface TestGround {
  readonly part: GroundPart
  readonly name: string
  /** A version of Node as npm takes it: `24` is the newest of these. */
  readonly node?: string
  /** A version of TypeScript, as npm takes it. */
  readonly typescript?: string
  readonly server?: DebianRelease
  readonly volume?: VolumeKind
  /** Beginnings of paths of test files. */
  readonly files: readonly string[]
}

const redisTests = [
  'test/stores/contract-redis',
  'test/stores/redis/',
  'test/stores/fixtures/',
  'test/store-testing/start-redis',
  'test/cli/commands/commands-redis',
  'test/end-to-end/secured-redis',
  'test/end-to-end/live-events',
]
const postgresTests = [
  'test/stores/contract-postgres',
  'test/stores/postgres/',
  'test/stores/fixtures/',
  'test/store-testing/postgres-server',
  'test/docs/docs-postgres',
]
const nodeTests = [
  'test/core/',
  'test/client/',
  'test/runtime/',
  'test/workers/',
  'test/mill/',
  'test/stores/contract',
  'test/stores/sqlite/',
  'test/stores/fixtures/',
  'test/stores/redis/client/redis-connection',
  'test/end-to-end/secured-redis',
]
const fileTests = ['test/stores/contract-sqlite', 'test/stores/sqlite/', 'test/end-to-end/live-events']

const server = (name: string, kind: DebianRelease['server'], ...suites: string[]): TestGround => ({
  part: 'Redis and Valkey',
  name,
  server: { server: kind, suites },
  files: redisTests,
})
const postgres = (name: string, version: number, suite: string): TestGround => ({
  part: 'PostgreSQL',
  name,
  server: { server: `postgresql-${version}`, suites: [suite] },
  files: postgresTests,
})
const node = (version: string, name = `Node ${version}`): TestGround => ({
  part: 'Node',
  name,
  node: version,
  files: nodeTests,
})
const files = (name: string, more: Pick<TestGround, 'volume' | 'files'>): TestGround => ({
  part: 'File systems for SQLite',
  name,
  ...more,
})

const typescript = (version: string, name = `TypeScript ${version}`): TestGround => ({
  part: 'TypeScript',
  name,
  typescript: version,
  files: ['test/package/typescript-versions'],
})

export const testGrounds: readonly TestGround[] = [
  { ...server('Redis 6.0: refused', 'redis', 'bullseye'), files: ['test/drills/old-redis'] },
  server('Redis 7.0', 'redis', 'bookworm'),
  server('Redis 8.0', 'redis', 'trixie'),
  server('Valkey 8.0', 'valkey', 'bookworm', 'bookworm-backports'),
  server('Valkey 8.1', 'valkey', 'trixie'),
  server('Valkey 9', 'valkey', 'sid'),
  postgres('PostgreSQL 15, the oldest', 15, 'bookworm'),
  postgres('PostgreSQL 17', 17, 'trixie'),
  postgres('PostgreSQL 18', 18, 'sid'),
  node('20.19.0', 'Node 20, the oldest'),
  node('22'),
  node('24'),
  node('26'),
  files('the disk of this machine', { files: fileTests }),
  files('tmpfs, in memory', { volume: 'tmpfs', files: fileTests }),
  files('overlay, as in a container', { volume: 'overlay', files: fileTests }),
  files('XFS', { volume: 'xfs', files: fileTests }),
  files('Btrfs', { volume: 'btrfs', files: fileTests }),
  files('a volume that is full', { volume: 'tmpfs', files: ['test/stores/sqlite/file/sqlite-full-disk'] }),
  files('a volume that may not be written', { volume: 'tmpfs', files: ['test/stores/sqlite/file/sqlite-read-only'] }),
  typescript('5.5', 'TypeScript 5.5, the oldest'),
  typescript('5.9'),
  typescript('6.0'),
  typescript('7.0'),
]

/** What the tests have not run on, with the reason. */
export const untested: readonly (readonly [ground: string, why: string])[] = [
  ['Redis 6.2', 'no release of Debian had it; the version is refused as 6.0 is, before any other command'],
  ['PostgreSQL 16', 'no release of Debian has it'],
  ['musl (Alpine)', 'neither npm nor Debian has a Node built for it'],
  ['macOS, Windows', 'the tests have run on Linux only'],
  ['arm64', 'the tests have run on x64 only'],
  ['file systems of a network (NFS, SMB)', 'SQLite does not promise its locks there'],
  ['managed Redis and PostgreSQL, and proxies before Redis', 'no such service was there'],
  ['Amazon SQS itself', 'the contract runs on two emulators: `npm run prove sqs-contract`'],
]
