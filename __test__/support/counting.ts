// Parameters that tell how often they are read.

/** Counts how often each property of an object is read, and of the objects below it. */
export function counting<T extends object>(target: T, counts: Map<string, number>, path = ""): T {
  return new Proxy(target, {
    get(object, name, receiver) {
      const value = Reflect.get(object, name, receiver);
      if (typeof name === "symbol") return value;
      const place = `${path}${name}`;
      counts.set(place, (counts.get(place) ?? 0) + 1);
      return typeof value === "object" && value !== null ? counting(value, counts, `${place}.`) : value;
    },
  });
}
