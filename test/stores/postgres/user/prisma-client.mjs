/**
 * The client that `prisma generate` 7.10 makes of this schema, without its types. To make it, Prisma downloads a program that
 * no package has, so it is kept here.
 */

import { getPrismaClient } from '@prisma/client/runtime/client'

export const inlineSchema = `
generator client {
  provider = "prisma-client"
  output   = "../generated"
}

datasource db {
  provider = "postgresql"
}

model Order {
  id      Int     @id @default(autoincrement())
  item    String
  shipped Boolean @default(false)

  @@map("orders")
}
`

export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: 'd1b3f377ca835d73fd50954a5e22128b9ebdd6b8',
  activeProvider: 'postgresql',
  inlineSchema,
  runtimeDataModel: {
    models: {
      Order: {
        fields: [
          { name: 'id', kind: 'scalar', type: 'Int' },
          { name: 'item', kind: 'scalar', type: 'String' },
          { name: 'shipped', kind: 'scalar', type: 'Boolean' },
        ],
        dbName: 'orders',
        schema: null,
      },
    },
    enums: {},
    types: {},
  },
  parameterizationSchema: {
    strings:
      'where Order.findUnique Order.findUniqueOrThrow orderBy cursor Order.findFirst Order.findFirstOrThrow Order.findMany data Order.createOne Order.createMany Order.createManyAndReturn Order.updateOne Order.updateMany Order.updateManyAndReturn create update Order.upsertOne Order.deleteOne Order.deleteMany having _count _avg _sum _min _max Order.groupBy Order.aggregate AND OR NOT id item shipped equals not in notIn lt lte gt gte contains startsWith endsWith set increment decrement multiply divide'.split(
        ' ',
      ),
    graph:
      'MAsQBhwAACUAMB0AAAQAEB4AACUAMB8CAAAAASABACcAISEgACgAIQEAAAABACABAAAAAQAgBhwAACUAMB0AAAQAEB4AACUAMB8CACYAISABACcAISEgACgAIQADAAAABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACADHwIAAAABIAEAAAABISAAAAABAQgAAAkAIAMfAgAAAAEgAQAAAAEhIAAAAAEBCAAACwAwAQgAAAsAMAMfAgAwACEgAQAuACEhIAAvACECAAAAAQAgCAAADgAgAx8CADAAISABAC4AISEgAC8AIQIAAAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAAAA4AIAEAAAABACABAAAABAAgBRUAACkAIBYAACoAIBcAAC0AIBgAACwAIBkAACsAIAYcAAAaADAdAAAXABAeAAAaADAfAgAbACEgAQAcACEhIAAdACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUAMAQAAAEAIAYcAAAaADAdAAAXABAeAAAaADAfAgAbACEgAQAcACEhIAAdACENFQAAHwAgFgAAJAAgFwAAHwAgGAAAHwAgGQAAHwAgIgIAAAABIwIAIwAhJAIAAAAEJQIAAAAEJgIAAAABJwIAAAABKAIAAAABKQIAAAABDhUAAB8AIBgAACIAIBkAACIAICIBAAAAASMBACEAISQBAAAABCUBAAAABCYBAAAAAScBAAAAASgBAAAAASkBAAAAASoBAAAAASsBAAAAASwBAAAAAQUVAAAfACAYAAAgACAZAAAgACAiIAAAAAEjIAAeACEFFQAAHwAgGAAAIAAgGQAAIAAgIiAAAAABIyAAHgAhCCICAAAAASMCAB8AISQCAAAABCUCAAAABCYCAAAAAScCAAAAASgCAAAAASkCAAAAAQIiIAAAAAEjIAAgACEOFQAAHwAgGAAAIgAgGQAAIgAgIgEAAAABIwEAIQAhJAEAAAAEJQEAAAAEJgEAAAABJwEAAAABKAEAAAABKQEAAAABKgEAAAABKwEAAAABLAEAAAABCyIBAAAAASMBACIAISQBAAAABCUBAAAABCYBAAAAAScBAAAAASgBAAAAASkBAAAAASoBAAAAASsBAAAAASwBAAAAAQ0VAAAfACAWAAAkACAXAAAfACAYAAAfACAZAAAfACAiAgAAAAEjAgAjACEkAgAAAAQlAgAAAAQmAgAAAAEnAgAAAAEoAgAAAAEpAgAAAAEIIggAAAABIwgAJAAhJAgAAAAEJQgAAAAEJggAAAABJwgAAAABKAgAAAABKQgAAAABBhwAACUAMB0AAAQAEB4AACUAMB8CACYAISABACcAISEgACgAIQgiAgAAAAEjAgAfACEkAgAAAAQlAgAAAAQmAgAAAAEnAgAAAAEoAgAAAAEpAgAAAAELIgEAAAABIwEAIgAhJAEAAAAEJQEAAAAEJgEAAAABJwEAAAABKAEAAAABKQEAAAABKgEAAAABKwEAAAABLAEAAAABAiIgAAAAASMgACAAIQAAAAAAAS0BAAAAAQEtIAAAAAEFLQIAAAABLgIAAAABLwIAAAABMAIAAAABMQIAAAABAAAAAAUVAAYWAAcXAAgYAAkZAAoAAAAAAAUVAAYWAAcXAAgYAAkZAAoBAgECAwEFBgEGBwEHCAEJCgEKDAILDQMMDwENEQIOEgQREwESFAETFQIaGAUbGQs',
  },
  compilerWasm: {
    getRuntime: () => import('@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs'),
    async getQueryCompilerWasmModule() {
      const { wasm } = await import('@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs')
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'))
    },
    importName: './query_compiler_fast_bg.js',
  },
})
