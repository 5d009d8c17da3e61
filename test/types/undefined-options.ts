/** The types of options: under `exactOptionalPropertyTypes` each optional one may be undefined. Checked by `npm run types`; never run. */

import type {
  EnqueueOptions,
  FollowOptions,
  HistoryOptions,
  HoldOptions,
  ListOptions,
  LiveOptions,
  MillOptions,
  OrderedEnqueueOptions,
  OrderedTaskOptions,
  QueueOptions,
  RetryOptions,
  ScheduleOptions,
  TaskOptions,
  ThrottleOptions,
  WorkerOptions,
} from 'millrace'
import type { TracingOptions } from 'millrace/telemetry'
import type { TestMillOptions, WhatToDrain } from 'millrace/testing'
import type { WebOptions } from 'millrace/web'
import { expectTypeOf } from 'vitest'

/** The names of the optional options that may be left out, but not be undefined. */
type Refusing<Options> = {
  [Name in keyof Options]-?: object extends Pick<Options, Name>
    ? undefined extends Required<Options>[Name]
      ? never
      : Name
    : never
}[keyof Options]

expectTypeOf<Refusing<EnqueueOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<FollowOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<OrderedEnqueueOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<TaskOptions<'a', string, string, void>>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<OrderedTaskOptions<'a', string, string>>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<RetryOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<NonNullable<QueueOptions['retention']>>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<ThrottleOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<ScheduleOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<WorkerOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<HoldOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<ListOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<HistoryOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<LiveOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<WebOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<TracingOptions>>().toEqualTypeOf<never>()
expectTypeOf<Refusing<WhatToDrain>>().toEqualTypeOf<never>()
// These are usually imported: an undefined one is refused, since jobs would be stored otherwise or run without it.
expectTypeOf<Refusing<QueueOptions>>().toEqualTypeOf<'throttle'>()
expectTypeOf<Refusing<MillOptions>>().toEqualTypeOf<'codec' | 'seal' | 'middleware'>()
expectTypeOf<Refusing<TestMillOptions>>().toEqualTypeOf<'codec' | 'seal' | 'middleware'>()
