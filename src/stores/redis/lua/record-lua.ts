/** Where the parts of a record are, in Lua. `redis-record.ts` describes its form. */

/** The first states of records without `createdAt` are small letters. */
export const firstUndated = 97

/** Whether the head of a record has `createdAt`. */
export const isDated = (record: string): string => `byte(${record}, 1) < ${firstUndated}`

/** Where the flags of a record are. */
export const flagsAt = (record: string): string => `${isDated(record)} and 21 or 15`

/** To be inserted into a function: the weight of a record in a claim. */
export const recordWeight = `
  -- The bytes of a record's payload and meta. They come after its texts: the task and those that its flags name.
  local function record_weight(record)
    local stop = ${flagsAt('record')}
    local flags, texts = byte(record, stop) % 32, 1
    while flags > 0 do
      texts, flags = texts + flags % 2, math.floor(flags / 2)
    end
    for _ = 1, texts do stop = find(record, '\\0', stop + 1, true) end
    return #record - stop
  end
`
