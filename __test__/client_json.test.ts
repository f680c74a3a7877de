// Section 6, JSON: the reader takes whatever JSON.parse of the decoded text takes, and nothing else; then the envelope.
import { describe, expect, test } from "vitest";
import { expectResponseError } from "./support/http_errors.js";
import { clientOf } from "./support/http_package.js";
import { drained, type HttpServer, reasonOf, serve, serveBytes, within } from "./support/http_server.js";

const NOT_JSON = "CreateOS returned invalid JSON.";
const UNSUCCESSFUL = "CreateOS returned an unsuccessful response.";
const NO_OBJECT = "CreateOS returned an invalid response.";
const OVERSIZED = "CreateOS returned an oversized response.";

/** A server whose answer to any request is these bytes. */
function serveBody(body: string | Uint8Array, status = 200): Promise<HttpServer> {
  return serve((_, res) => res.writeHead(status, { "content-type": "application/json" }).end(body));
}

async function read(body: string | Uint8Array): Promise<Record<string, unknown>> {
  const server = await serveBody(body);
  return within(clientOf(server.origin).json("/x"), "the data");
}

async function refusal(body: string | Uint8Array): Promise<unknown> {
  const server = await serveBody(body);
  return reasonOf(clientOf(server.origin).json("/x"));
}

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

/** What the platform makes of the same bytes. */
const platform = (body: Uint8Array) => JSON.parse(new TextDecoder().decode(body)) as { data: unknown };

describe("is read", () => {
  test.each<[string, Buffer]>([
    ["plainly", bytes('{"status":"success","data":{"a":1}}')],
    ["with an empty data", bytes('{"status":"success","data":{}}')],
    ["with white space everywhere", bytes(' \t\r\n{ "status" :\n"success" , "data" : { "a" : [ 1 , 2 ] } }\r\n ')],
    ["with fields in another order, and further ones", bytes('{"data":{"a":1},"x":[{}],"status":"success","message":7}')],
    ["behind a byte order mark", bytes([0xef, 0xbb, 0xbf], '{"status":"success","data":{"a":1}}')],
    ["with a second mark inside a string", bytes('{"status":"success","data":{"a":"\ufeff"}}')],
    ["with lone surrogate escapes", bytes('{"status":"success","data":{"a":"x\\ud800y","\\udfff":"\\udc00\\ud800"}}')],
    ["with surrogate pairs as escapes", bytes('{"status":"success","data":{"a":"\\ud83d\\ude00"}}')],
    ["with an escaped status", bytes('{"\\u0073tatus":"succes\\u0073","d\\u0061ta":{"a":1}}')],
    ["with duplicate keys, the last of which counts", bytes('{"status":"error","status":"success","data":1,"data":{"a":1,"a":2}}')],
    ["with __proto__ as a key like any other", bytes('{"status":"success","data":{"__proto__":{"x":1},"constructor":2}}')],
    ["with numbers of every form", bytes('{"status":"success","data":{"a":[0,-0,1e400,-1e400,1E+2,12345678901234567890,0.1e-999,5e-324]}}')],
    ["with every escape", bytes('{"status":"success","data":{"a":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000"}}')],
    ["with characters that JavaScript once refused", bytes('{"status":"success","data":{"a":"\u2028\u2029\u007f"}}')],
    ["with invalid UTF-8 in a string", bytes('{"status":"success","data":{"a":"', [0xff, 0xc3, 0x28, 0xe2, 0x82], '"}}')],
    ["with UTF-8 of surrogates and overlong forms", bytes('{"status":"success","data":{"a":"', [0xed, 0xa0, 0x80, 0xc0, 0xaf, 0xf0, 0x9f, 0x98], '"}}')],
    ["with invalid UTF-8 in a key", bytes('{"status":"success","data":{"', [0xff], '":1}}')],
    ["with an empty key", bytes('{"":0,"status":"success","data":{"":1}}')],
    ["with numeric keys, in JavaScript's order", bytes('{"status":"success","data":{"b":1,"2":2,"1":1}}')],
  ])("%s", async (_, body) => {
    const data = await read(body);
    expect(data).toStrictEqual(platform(body).data);
    expect(JSON.stringify(data)).toBe(JSON.stringify(platform(body).data));
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  });

  test("100,000 levels deep, inside and outside the data", async () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    const data = await read(`{"x":${deep},"status":"success","data":{"deep":${deep},"after":1}}`);
    expect(data["after"]).toBe(1);
    let levels = 0;
    for (let at = data["deep"]; Array.isArray(at); at = at[0] as unknown) levels += 1;
    expect(levels).toBe(100_000);
  });

  test("100,000 objects deep", async () => {
    const deep = '{"a":'.repeat(100_000) + "1" + "}".repeat(100_000);
    const data = await read(`{"status":"success","data":${deep}}`);
    expect(data).toHaveProperty("a");
  });

  test("whatever the content type says, and whatever success the status is", async () => {
    const text = '{"status":"success","data":{"a":1}}';
    for (const [status, type] of [[200, "text/html"], [201, "application/octet-stream"], [206, ""]] as const) {
      const server = await serve((_, res) => res.writeHead(status, type === "" ? {} : { "content-type": type }).end(text));
      await expect(clientOf(server.origin).json("/x")).resolves.toEqual({ a: 1 });
    }
  });

  test("when it comes in single bytes", async () => {
    const text = Buffer.from('{"status":"success","data":{"a":"é😀"}}');
    const server = await serve(async (_, res) => {
      for (const byte of text) await new Promise((resolve) => res.write(Buffer.of(byte), resolve));
      res.end();
    });
    await expect(clientOf(server.origin).json("/x")).resolves.toEqual({ a: "é😀" });
  });
});

describe("is refused as invalid", () => {
  test.each<[string, string | Buffer]>([
    ["nothing", ""],
    ["blanks", " \n"],
    ["a byte order mark alone", bytes([0xef, 0xbb, 0xbf])],
    ["two byte order marks", bytes([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf], "{}")],
    ["a mark behind a blank", bytes(" ", [0xef, 0xbb, 0xbf], '{"status":"success","data":{}}')],
    ["UTF-16", Buffer.from('{"status":"success","data":{}}', "utf16le")],
    ["text", "Bad gateway"],
    ["HTML", "<!doctype html><title>502</title>"],
    ["null", "null"],
    ["true", "true"],
    ["a number", "1"],
    ["a string", '"success"'],
    ["an array", '[{"status":"success","data":{}}]'],
    ["an empty array", "[]"],
    ["a cut object", '{"status":"success","data":{'],
    ["a cut string", '{"status":"success","data":{"a":"'],
    ["a second value", '{"status":"success","data":{}}{}'],
    ["NUL behind it", '{"status":"success","data":{}}\0'],
    ["a trailing comma", '{"status":"success","data":{},}'],
    ["a trailing comma deep inside", '{"status":"success","data":{"a":[1,]}}'],
    ["a comment", '{"status":"success",/**/"data":{}}'],
    ["single quotes", "{'status':'success','data':{}}"],
    ["names without quotes", '{status:"success",data:{}}'],
    ["NaN", '{"status":"success","data":{"a":NaN}}'],
    ["Infinity", '{"status":"success","data":{"a":-Infinity}}'],
    ["a leading zero", '{"status":"success","data":{"a":01}}'],
    ["a leading plus", '{"status":"success","data":{"a":+1}}'],
    ["a bare point", '{"status":"success","data":{"a":1.}}'],
    ["hexadecimal", '{"status":"success","data":{"a":0x1}}'],
    ["an unknown escape", '{"status":"success","data":{"a":"\\x41"}}'],
    ["a short escape", '{"status":"success","data":{"a":"\\u12"}}'],
    ["a raw line break in a string", '{"status":"success","data":{"a":"\n"}}'],
    ["a raw tab in a name", '{"status":"success","data":{"\t":1}}'],
    ["a no-break space", '{"status":"success",\u00a0"data":{}}'],
    ["a vertical tab", '{"status":"success",\v"data":{}}'],
    ["a broken value in an ignored field", '{"x":[1 2],"status":"success","data":{}}'],
    ["an unclosed deep array", `{"status":"success","data":{"a":${"[".repeat(100_000)}`],
  ])("%s", async (_, body) => {
    const whole = typeof body === "string" ? Buffer.from(body) : body;
    // Either JSON.parse refuses it too, or it is no object.
    let parsed: unknown;
    try {
      parsed = platform(whole);
    } catch {
      parsed = undefined;
    }
    expect(typeof parsed !== "object" || parsed === null || Array.isArray(parsed)).toBe(true);
    expectResponseError(await refusal(body), NOT_JSON);
  });

  test.each([204, 205])("HTTP %i", async (status) => {
    const server = await serve((_, res) => res.writeHead(status).end());
    expectResponseError(await reasonOf(clientOf(server.origin).json("/x")), NOT_JSON);
  });

  test.each([
    ["shorter than announced", 'HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"status":"success","data":{}}'],
    ["without its last chunk", 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1e\r\n{"status":"success","data":{}}\r\n'],
    ["with a broken chunk", 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{"status":"success","data":{}}\r\n'],
    ["cut before its first byte", "HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n"],
  ])("one %s, though what came reads as JSON", async (_, answer) => {
    for (const then of ["end", "reset"] as const) {
      const server = await serveBytes(answer, then);
      expectResponseError(await reasonOf(clientOf(server.origin).json("/x")), NOT_JSON);
    }
  });

  test("nothing of the text surfaces", async () => {
    expectResponseError(await refusal("SECRET-ECHO-51 { not json"), NOT_JSON, "SECRET-ECHO-51", "not json");
  });
});

describe("the envelope", () => {
  test.each<[string, string]>([
    ["no status", '{"data":{"a":1}}'],
    ["fail", '{"status":"fail","data":{"a":1}}'],
    ["error", '{"status":"error","message":"SECRET-ECHO-52","data":{}}'],
    ["other case", '{"status":"Success","data":{}}'],
    ["blanks around it", '{"status":" success","data":{}}'],
    ["null", '{"status":null,"data":{}}'],
    ["true", '{"status":true,"data":{}}'],
    ["a number", '{"status":200,"data":{}}'],
    ["an array of it", '{"status":["success"],"data":{}}'],
    ["a lone surrogate in it", '{"status":"success\\ud800","data":{}}'],
    ["a later status that fails", '{"status":"success","data":{},"status":"fail"}'],
    ["an empty object", "{}"],
    ["a status in the data only", '{"data":{"status":"success"}}'],
  ])("%s is unsuccessful", async (_, body) => {
    expectResponseError(await refusal(body), UNSUCCESSFUL, "SECRET-ECHO-52");
  });

  test.each<[string, string]>([
    ["no data", '{"status":"success"}'],
    ["null", '{"status":"success","data":null}'],
    ["an array", '{"status":"success","data":[]}'],
    ["an array of objects", '{"status":"success","data":[{"a":1}]}'],
    ["a string", '{"status":"success","data":"{}"}'],
    ["a number", '{"status":"success","data":1}'],
    ["a boolean", '{"status":"success","data":true}'],
    ["a later data that is none", '{"status":"success","data":{},"data":null}'],
  ])("%s is an invalid response", async (_, body) => {
    expectResponseError(await refusal(body), NO_OBJECT);
  });

  test("what getSandbox, createSandbox and transition read goes through the same", async () => {
    const cases = [["[]", NOT_JSON], ['{"status":"fail"}', UNSUCCESSFUL], ['{"status":"success","data":[]}', NO_OBJECT]];
    for (const [body = "", message = ""] of cases) {
      const client = clientOf((await serveBody(body)).origin);
      expectResponseError(await reasonOf(client.getSandbox("sb-1")), message);
      expectResponseError(await reasonOf(client.createSandbox()), message);
      expectResponseError(await reasonOf(client.transition("sb-1", "running")), message);
    }
  });
});

describe("64 MiB", () => {
  const LIMIT = 64 * 1024 * 1024;
  const HEAD = '{"status":"success","data":{"a":"';
  const TAIL = '"}}';

  /** A server of a JSON answer of exactly so many bytes, which never holds it whole. */
  const serveSize = (size: number, announced: boolean) =>
    serve(async (_, res) => {
      res.writeHead(200, announced ? { "content-length": size } : {});
      res.write(HEAD);
      const piece = Buffer.alloc(1024 * 1024, "x");
      for (let left = size - HEAD.length - TAIL.length; left > 0 && !res.destroyed; left -= piece.length) {
        if (!res.write(piece.subarray(0, left))) await drained(res);
      }
      res.end(TAIL);
    });

  test("exactly is read", async () => {
    const server = await serveSize(LIMIT, true);
    const data = await within(clientOf(server.origin).json("/x"), "the data", 25_000);
    expect((data["a"] as string).length).toBe(LIMIT - HEAD.length - TAIL.length);
  });

  test.each([["announced", true], ["not announced", false]])("and one byte, %s, is oversized", async (_, announced) => {
    const server = await serveSize(LIMIT + 1, announced);
    expectResponseError(await reasonOf(clientOf(server.origin).json("/x"), 25_000), OVERSIZED);
  });

  test("an endless answer is left at the limit", async () => {
    let sent = 0;
    const server = await serve(async (_, res) => {
      const piece = Buffer.alloc(1024 * 1024, " ");
      while (!res.destroyed) {
        sent += piece.length;
        if (!res.write(piece)) await drained(res);
      }
    });
    expectResponseError(await reasonOf(clientOf(server.origin).json("/x"), 25_000), OVERSIZED);
    const seen = await server.requests.at(0);
    expect(await within(seen.closed, "the connection's end")).toBe(true);
    expect(sent).toBeLessThan(2 * LIMIT);
  });
});

describe("what json sends", () => {
  test("method, body and headers", async () => {
    const server = await serve((_, res) => res.end('{"status":"success","data":{}}'));
    const client = clientOf(server.origin);
    await client.json("/a");
    await client.json("/b", "post", { text: "é\ud800", list: [1, null], gone: undefined });
    await client.json("/c", "PUT", null);
    await client.json("/d", "POST", "text");
    await client.json("/e", "POST");
    await client.json("/f", "DELETE");
    const seen = await Promise.all(
      server.requests.all.map(async ({ method, url, headers, body }) => [
        `${method} ${url}`,
        headers["content-type"],
        headers["accept"],
        (await body).toString(),
      ]),
    );
    expect(seen).toEqual([
      ["GET /v1/a", undefined, "application/json", ""],
      ["POST /v1/b", "application/json", "application/json", '{"text":"é\\ud800","list":[1,null]}'],
      ["PUT /v1/c", "application/json", "application/json", "null"],
      ["POST /v1/d", "application/json", "application/json", '"text"'],
      ["POST /v1/e", "application/json", "application/json", "{}"],
      ["DELETE /v1/f", undefined, "application/json", ""],
    ]);
  });

  test("a body that can't be written is refused without a request", async () => {
    const server = await serve((_, res) => res.end('{"status":"success","data":{}}'));
    const client = clientOf(server.origin);
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect(await reasonOf(client.json("/x", "POST", cycle))).toBeInstanceOf(TypeError);
    expect(await reasonOf(client.json("/x", "POST", { big: 1n }))).toBeInstanceOf(TypeError);
    expect(server.connections.length).toBe(0);
  });
});

describe("as JSON.parse does", () => {
  // A fixed sequence, so that a failure can be had again.
  function* numbers(seed: number): Generator<number> {
    for (let state = seed; ; ) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      yield state / 2 ** 32;
    }
  }

  test.each([1, 2, 3, 4])("with 250 texts that a few bytes were changed in, number %i", async (seed) => {
    const random = numbers(seed);
    const pick = (below: number) => Math.floor((random.next().value as number) * below);
    const original = Buffer.from('\ufeff {"status":"success","x":[1,-2.5e+3,true,null,"\\ud83d\\ude00é"],"data":{"a":{"b":[]},"c":"\\n"}} ');
    const LIKELY = Buffer.from('{}[]",:\\u0 \n\t-+.eE19tfn\x00\x1f\xff\xc3', "latin1");
    const texts = Array.from({ length: 250 }, () => {
      const text = Buffer.from(original);
      for (let times = pick(3); times >= 0; times -= 1) text[pick(text.length)] = LIKELY[pick(LIKELY.length)] as number;
      return text;
    });
    // Its own origin each time: an origin takes 300 requests a minute.
    const server = await serve((req, res) => res.end(texts[Number(req.url?.split("/")[2])]));
    const client = clientOf(server.origin);
    for (const [place, text] of texts.entries()) {
      let expected: unknown;
      try {
        const parsed = JSON.parse(new TextDecoder().decode(text)) as { status?: unknown; data?: unknown } | null;
        const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);
        if (!isObject(parsed)) expected = NOT_JSON;
        else if (parsed?.status !== "success") expected = UNSUCCESSFUL;
        else expected = isObject(parsed.data) ? parsed.data : NO_OBJECT;
      } catch {
        expected = NOT_JSON;
      }
      const found = await client.json(`/${place}`).catch((error: Error) => error.message);
      expect(found, text.toString("latin1")).toStrictEqual(expected);
    }
  });
});
