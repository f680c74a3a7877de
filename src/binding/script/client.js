// The provider client (specification, section 6): what is JavaScript's about it, which is bodies, web
// Responses and streams.
(function client(native, shared, exports) {
  'use strict';

  const { bounded, coreOf, describe, readConfig, readList, run, tie, toReason } = shared;

  /** Statuses whose Response the platform makes without a body. */
  const BODILESS = new Set([204, 205]);

  /** Given instead of a configuration by the scripts, which have it parsed already. */
  const PARSED = Symbol('parsed');

  /** The bytes of a view or buffer, as the platform's own Response would read them. */
  function toBytes(body) {
    if (ArrayBuffer.isView(body)) {
      return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
    }
    return new Uint8Array(body);
  }

  /**
   * Where the pieces of a streaming body come from. Read here and not through a Response of the
   * platform's, which on Node 20 brings the process down when an iterable is given up at its end.
   */
  function toSource(body) {
    if (typeof body.getReader === 'function') {
      const reader = body.getReader();
      return { next: () => reader.read(), cancel: (reason) => reader.cancel(reason) };
    }
    const iterator = body[Symbol.asyncIterator]();
    return { next: () => iterator.next(), cancel: async () => iterator.return?.() };
  }

  /** Sends a body piece by piece, no faster than the connection takes it. */
  async function pump(source, upload) {
    let broken = true;
    try {
      for (;;) {
        const { done, value } = await source.next();
        if (done) {
          broken = false;
          return;
        }
        if (!(value instanceof Uint8Array)) {
          await source.cancel(new TypeError('A request body must be a stream of Uint8Array.'));
          return;
        }
        if (!(await native.pushUpload(upload, value))) {
          await source.cancel();
          return;
        }
      }
    } catch {
      // The request fails for want of its body; that failure is the one the caller gets.
    } finally {
      native.endUpload(upload, broken).catch(() => {});
    }
  }

  /** Whether fetch would read the body as it goes, its length unknown. */
  const isStream = (body) =>
    typeof body.getReader === 'function' || Symbol.asyncIterator in Object(body);

  /**
   * A body as native code takes it, and its default content type. A promise only where the platform
   * itself has to read it first: everything else is taken as it is at this moment.
   */
  function toNativeBody(body, stop) {
    if (body === undefined || body === null) return { payload: undefined };
    if (typeof body === 'string') return { payload: body, type: 'text/plain;charset=UTF-8' };
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return { payload: toBytes(body) };
    if (body instanceof URLSearchParams) {
      return { payload: String(body), type: 'application/x-www-form-urlencoded;charset=UTF-8' };
    }
    if (isStream(body)) {
      const source = toSource(body);
      const upload = native.createUpload();
      stop.now = (reason) => source.cancel(reason).catch(() => {});
      stop.start = () => {
        stop.isPumping = true;
        pump(source, upload).finally(() => {
          stop.isPumping = false;
        });
      };
      return { payload: upload };
    }
    // Whatever else fetch takes is read as the platform's own Response reads it.
    const read = new Response(body);
    const type = read.headers.get('content-type') ?? undefined;
    return read.arrayBuffer().then((buffer) => ({ payload: new Uint8Array(buffer), type }));
  }

  /** How long a source that nobody needs any more may take for the piece it is asked for, in ms. */
  const PATIENCE = 100;

  /**
   * Gives a source up after a failure. While it is asked for a piece its reader does that, once it has
   * the piece: some of Node's own streams bring the process down when they are cancelled while they
   * end. Only one that stays silent is cancelled all the same.
   */
  function stopSoon(stop, reason) {
    const timer = setTimeout(() => {
      if (stop.isPumping) stop.now(reason);
    }, PATIENCE);
    timer.unref?.();
  }

  /** A stream that will not be read is told so, as fetch tells it. */
  function cancelBody(body, reason) {
    if (typeof body?.cancel === 'function' && body.locked === false) {
      body.cancel(reason).catch(() => {});
    }
  }

  /** Responses that nobody reads: once collected, their signal need not know of them any more. */
  const unread = new FinalizationRegistry((untie) => untie());

  /** A Response's body: native pieces, one for each time the reader asks. */
  class BodySource {
    type = 'bytes';
    #body;
    #signal;
    #untie;
    #controller;

    constructor(body, signal, untie) {
      this.#body = body;
      this.#signal = signal;
      this.#untie = untie;
    }

    start(controller) {
      this.#controller = controller;
    }

    async pull(controller) {
      let piece;
      try {
        // An empty piece is no piece: the stream would not ask again after it.
        do piece = await native.readBody(this.#body);
        while (piece?.byteLength === 0);
      } catch (error) {
        if (this.#finish()) controller.error(toReason(error, this.#signal));
        return;
      }
      if (this.#body === undefined) return;
      if (piece !== undefined) {
        controller.enqueue(piece);
        return;
      }
      this.#finish();
      controller.close();
      // A reader that brought its own buffer is waiting for it.
      controller.byobRequest?.respond(0);
    }

    cancel() {
      this.#finish();
    }

    /** The signal was aborted: the body fails at once, whatever it still holds. */
    abort() {
      if (this.#finish()) this.#controller.error(this.#signal.reason);
    }

    /** Lets go of the connection and the signal. False when that was done before. */
    #finish() {
      if (this.#body === undefined) return false;
      native.dropBody(this.#body);
      this.#body = undefined;
      this.#untie();
      return true;
    }
  }

  const INSPECT = Symbol.for('nodejs.util.inspect.custom');

  /** What an inspection of a client shows. */
  class Shown {}
  Object.defineProperty(Shown, 'name', { value: 'CreateosClient' });

  /** The caller's headers. An illegal one is not repeated in the error: it may be a key. */
  function toHeaders(headers) {
    try {
      return new Headers(headers ?? undefined);
    } catch {
      throw new TypeError('headers must be legal header names and values.');
    }
  }

  /** Refuses what is neither nothing nor fits, by its name. */
  function requireOption(name, value, fits, wanted) {
    if (value === undefined || value === null || fits(value)) return value ?? null;
    throw new TypeError(`${name} must be ${wanted}.`);
  }

  const isAutoPause = (value) => Number.isInteger(value) && value >= 60 && value <= 86_400;

  const isText = (value) => typeof value === 'string';

  /** A list of hosts and CIDRs. */
  function requireRules(egress) {
    const rules = readList(egress);
    if (rules && rules.every(isText)) return rules;
    throw new TypeError('egress must be an array of strings.');
  }

  class CreateosClient {
    #entry;
    #core;
    #config;

    static {
      shared.coreOfClient = (client) =>
        typeof client === 'object' && client !== null && #core in client ? client.#core : undefined;
    }

    constructor(config, entry, core) {
      if (config === PARSED) {
        this.#entry = entry;
        this.#core = core;
      } else {
        this.#entry = readConfig(config);
        this.#core = coreOf(this.#entry);
      }
    }

    get config() {
      if (this.#config === undefined) {
        const { apiKey: _, ...config } = describe(this.#entry);
        const core = this.#core;
        // An accessor, so that not even an inspection of hidden properties prints the key.
        const get = () => native.clientKey(core);
        Object.defineProperty(config, 'apiKey', { get, enumerable: false });
        const shown = { ...config };
        Object.defineProperty(config, INSPECT, { value: () => shown, enumerable: false });
        Object.freeze(config.rootfsByAdapter);
        Object.freeze(config.egressAllowlist);
        this.#config = Object.freeze(config);
      }
      return this.#config;
    }

    get apiKey() {
      return native.clientKey(this.#core);
    }

    /** Whatever an inspection asks for, hidden properties and getters too: no key. */
    [INSPECT]() {
      return new Shown();
    }

    async request(path, init) {
      const { method = 'GET', headers, body, signal } = init ?? {};
      const stop = { start: undefined, now: undefined, isPumping: false };
      let untie = () => {};
      try {
        let reading;
        const tied = tie(signal, () => reading?.deref()?.abort());
        untie = tied.untie;
        const sent = toHeaders(headers);
        let taken = toNativeBody(body, stop);
        // Awaited only where it must be: requests leave in the order of their calls.
        if (taken instanceof Promise) taken = await taken;
        const { payload, type } = taken;
        if (type !== undefined && !sent.has('content-type')) sent.set('content-type', type);
        const prepared = native.request(
          this.#core,
          tied.cancel,
          String(method).toUpperCase(),
          String(path),
          [...sent].flat(),
          payload,
        );
        stop.start?.();
        const [status, statusText, received, nativeBody] = await run(prepared);
        const source = new BodySource(nativeBody, signal, untie);
        const stream = new ReadableStream(source, { highWaterMark: 0 });
        // Weakly, so that a signal that lives long does not keep every answer it was given for.
        reading = new WeakRef(source);
        unread.register(stream, untie);
        return toResponse(stream, status, statusText, received);
      } catch (error) {
        untie();
        const reason = toReason(error, signal);
        if (stop.now === undefined) cancelBody(body, reason);
        else if (signal?.aborted || !stop.isPumping) stop.now(reason);
        else stopSoon(stop, reason);
        throw reason;
      }
    }

    async json(path, method = 'GET', body, signal) {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const data = await bounded(signal, (cancel) =>
        native.json(this.#core, cancel, String(method).toUpperCase(), String(path), text),
      );
      return JSON.parse(data);
    }

    async getSandbox(id, signal) {
      const status = await bounded(signal, (cancel) => native.getSandbox(this.#core, cancel, id));
      return { id, status };
    }

    async createSandbox(signal, options) {
      const { rootfs, egress, autoPauseAfterSeconds } = options ?? {};
      const image = requireOption('rootfs', rootfs, isText, 'a string');
      const rules = requireRules(egress ?? []);
      const seconds = requireOption(
        'autoPauseAfterSeconds',
        autoPauseAfterSeconds,
        isAutoPause,
        'an integer between 60 and 86400',
      );
      const id = await bounded(signal, (cancel) =>
        native.createSandbox(this.#core, cancel, image, rules, seconds),
      );
      return { id };
    }

    async destroySandbox(id, signal) {
      await bounded(signal, (cancel) => native.destroySandbox(this.#core, cancel, id));
    }

    async transition(id, desired, signal) {
      if (desired !== 'running' && desired !== 'paused') {
        throw new TypeError('desired must be "running" or "paused".');
      }
      const running = desired === 'running';
      await bounded(signal, (cancel) => native.transition(this.#core, cancel, id, running));
    }

    async setEgress(id, egress, signal) {
      const rules = requireRules(egress);
      await bounded(signal, (cancel) => native.setEgress(this.#core, cancel, id, rules));
    }

    async upload(id, path, content, signal) {
      const isBytes = content instanceof ArrayBuffer || ArrayBuffer.isView(content);
      if (!isBytes && typeof content !== 'string') {
        throw new TypeError('content must be a string or bytes.');
      }
      const bytes = isBytes ? toBytes(content) : content;
      await bounded(signal, (cancel) =>
        native.upload(this.#core, cancel, id, String(path), bytes),
      );
    }
  }

  /** A web Response. An empty answer still has a body, whatever the platform makes of its status. */
  function toResponse(stream, status, statusText, received) {
    const headers = new Headers();
    for (let place = 0; place < received.length; place += 2) {
      headers.append(received[place], received[place + 1]);
    }
    if (!BODILESS.has(status)) return new Response(stream, { status, statusText, headers });
    return withStatus(new Response(stream, { statusText, headers }), status);
  }

  /** Gives a Response, and every clone of it, a status that the platform makes without a body. */
  function withStatus(response, status) {
    const clone = () => withStatus(Response.prototype.clone.call(response), status);
    return Object.defineProperties(response, { status: { value: status }, clone: { value: clone } });
  }

  exports.CreateosClient = CreateosClient;
  Object.assign(shared, { CreateosClient, PARSED });
})
//# sourceURL=createos-lease/client.js
