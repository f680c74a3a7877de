/// <reference types="node" />
// What the tests of streams share.
import { setImmediate as turn } from "node:timers/promises";
import type { clientOf } from "./http_package.js";
import { within } from "./http_server.js";

export const MIB = 1024 * 1024;
export type Body = NonNullable<NonNullable<Parameters<ReturnType<typeof clientOf>["request"]>[1]>["body"]>;

/** Bytes that tell where they are. */
export const pattern = (length: number, from = 0) => Uint8Array.from({ length }, (_, index) => (from + index) % 251);

export const text = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

/** A reader's next piece, within reason. */
export const nextTo = <T>(reader: { read(): Promise<T> } | undefined): Promise<T> =>
  within(reader?.read() ?? Promise.reject(new Error("no body")), "a piece");

/** Where something counts up, the value at which it has stood still for `ms`. */
export async function standstill(count: () => number, ms = 300): Promise<number> {
  for (let last = -1; ; last = count()) {
    if (last === count()) return last;
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

/** Collects garbage. */
export async function collector(): Promise<() => void> {
  if (globalThis.gc) return () => void globalThis.gc?.();
  const [{ setFlagsFromString }, { runInNewContext }] = await Promise.all([import("node:v8"), import("node:vm")]);
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

/** Collects garbage often enough for finalisers to run, or until there is nothing left to wait for. */
export async function collect(gc: () => void, isDone: () => boolean = () => false, rounds = 20): Promise<void> {
  for (let round = 0; round < rounds && !isDone(); round += 1) {
    gc();
    await turn();
  }
}
