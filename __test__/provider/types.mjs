// The shapes shared by the loopback provider's files, as JSDoc types. No run-time code.

/**
 * @typedef {"creating"|"running"|"pausing"|"paused"|"resuming"|"forking"|"error"|"destroying"|"destroyed"|"failed"} Status
 * @typedef {"stdout"|"stderr"|"pty"} StreamName
 */

/**
 * What disagreeing sources of the provider contract (section 18) say, as switches. Mutable at any time through
 * `provider.switches`.
 * @typedef {object} Switches
 * @property {boolean} createStatus the create reply has `status` (default true)
 * @property {boolean} createQuota the create reply has `bandwidth_quota_bytes` (default true)
 * @property {"sb-"|"sb_"} idPrefix
 * @property {boolean} destroyedIs404 a destroyed sandbox answers 404 instead of 200 `destroyed`
 * @property {boolean} inlineDestroy deleting a paused or failed sandbox answers `destroyed` at once
 * @property {"410"|"frame"} expiredOutput how an expired output cursor is told
 * @property {boolean} strictBody POST pause, resume and stdin/close without length or JSON type get 411
 * @property {"create"|"reject"} missingParent upload into a missing directory
 * @property {"object"|"string"|"null"|"html"} failData the form of a failure body
 * @property {"ok"|"empty"|"id"} ack the payload of an acknowledgement
 * @property {boolean} execStdin `stdin` of exec is honoured
 * @property {boolean} execStream404 streaming exec answers 404
 * @property {boolean} execKillOnDisconnect a client that goes away ends its exec
 * @property {number} oldStateReads reads that still show the old state after an accepted pause or resume
 * @property {boolean} credit false: create, resume and fork answer 402
 * @property {boolean} pauseCutsStreams streams into a sandbox are cut when it pauses
 * @property {boolean} backpressure a slow attached reader slows the process instead of losing output
 * @property {"leader"|"tree"} exitScope when the `exit` frame is sent
 */

/**
 * @typedef {object} ProviderOptions
 * @property {string[]|Record<string,string>} [apiKeys] keys, each its own owner; or key -> owner name
 * @property {Partial<Delays>} [delays] how long transitions take, in ms
 * @property {Partial<Switches>} [switches]
 * @property {{requests: number, windowMs: number, retryAfter?: boolean, enforce?: boolean}} [rateLimit] off when absent;
 *   `enforce: false` only records violations
 * @property {number} [heartbeatMs] heartbeat interval of streams, default 5000
 * @property {number} [journalBytes] retained output per process, default 1 MiB
 * @property {number} [frameBytes] largest output frame, decoded, default 32 KiB
 * @property {number} [fileLimitBytes] default 500 MiB
 * @property {number} [autoPauseScale] factor on auto_pause_after_seconds, default 1; 0.001 makes a minute 60 ms
 * @property {number} [pollAfterSeconds] X-Poll-After of an accepted pause, default 1
 * @property {string} [region] default "eu"
 * @property {"auto"|"namespace"|"rewrite"} [isolation] default auto
 * @property {number} [port] default 0, any free one
 * @property {number} [logLimit] requests and events kept, default 100000
 * @property {Synthetic} [synthetic] every managed process without a terminal gives this output instead of running
 *
 * Output that no command produces, for measuring readers: `text` repeated from the beginning of each frame.
 * @typedef {{bytes: number, frameBytes: number, text?: string}} Synthetic
 *
 * @typedef {{create: number, pause: number, resume: number, destroy: number}} Delays
 */

/**
 * One received request. The API key never appears in it.
 * @typedef {object} RequestEntry
 * @property {number} id
 * @property {string} method
 * @property {string} path percent-decoded path
 * @property {string} url raw path and query as received
 * @property {string|undefined} route name such as "sandbox.create"
 * @property {number} at performance.now() when the head was read
 * @property {number|undefined} finishedAt
 * @property {number|undefined} status
 * @property {boolean} aborted the client, or a fault, ended the connection early
 * @property {string|undefined} sandboxId
 * @property {string|undefined} owner
 * @property {Record<string,string|string[]|undefined>} headers
 * @property {string|undefined} contentType
 * @property {string|undefined} contentLength
 * @property {any} body parsed JSON body, if any
 * @property {string[]} faults the effects applied
 */

/**
 * @typedef {{type: "request:start"|"request:finish", request: RequestEntry}} RequestEvent
 * @typedef {{type: "sandbox:state", id: string, from: Status|undefined, to: Status, at: number}} SandboxEvent
 * @typedef {{type: "process:start"|"process:exit"|"process:tree-exit", id: string, sandboxId: string, pid: number, at: number}} ProcessEvent
 * @typedef {{type: "fault:hit", effect: string, request: RequestEntry}} FaultEvent
 * @typedef {RequestEvent|SandboxEvent|ProcessEvent|FaultEvent} ProviderEvent
 */

/**
 * Where a streaming reply goes. `write` resolves once the client has taken enough for more to be worth making.
 * @typedef {object} Sink
 * @property {(chunk: Buffer|string) => Promise<void>} write
 * @property {(chunk: Buffer) => Promise<void>} flush resolves once the bytes left this process; the buffer is free again
 * @property {AbortSignal} signal aborted when the client is gone or the stream was cut
 */

/**
 * What a route handler returns; the server sends it, after faults have had their say.
 * @typedef {object} Reply
 * @property {number} [status]
 * @property {Record<string,string>} [headers]
 * @property {any} [data] payload of a JSend success
 * @property {Buffer|string} [raw] complete body instead of an envelope
 * @property {(sink: Sink) => Promise<void>} [stream] body made while it is sent
 */

/**
 * @typedef {object} Context
 * @property {import("node:http").IncomingMessage} req
 * @property {import("node:http").ServerResponse} res
 * @property {URLSearchParams} query
 * @property {Record<string,string>} params decoded path parameters
 * @property {Record<string, any>} body parsed JSON object; empty for `{}`, `null` and no body
 * @property {string} owner
 * @property {RequestEntry} entry
 * @property {import("./faults.mjs").Effect[]} effects
 * @property {AbortSignal} signal aborted when the client is gone
 * @property {() => void} cut destroys the connection
 */

export {};
