// What can be wrong with a configuration, in the order in which it must be noticed (specification, section 2).

export interface ConfigFault {
  field: string;
  message: string;
  /** Values of the field that are refused so. */
  values: unknown[];
}

const text = (field: string): ConfigFault => ({
  field,
  message: `${field} must be a non-empty string.`,
  values: ["", "  ", "\t\n\u00a0\ufeff", "a\0b", 7, true, {}, [], Symbol("s"), 1n, () => "a"],
});

export const configFaults: ConfigFault[] = [
  text("apiUrl"),
  { field: "apiUrl", message: "CreateOS requires an API URL.", values: [null, undefined] },
  {
    field: "apiUrl",
    message: "CreateOS API URL is invalid.",
    values: ["createos", "https://", "http://[::1", "//h", "https://a b"],
  },
  {
    field: "apiUrl",
    message:
      "CreateOS API URL must be an HTTPS origin (optionally ending in /v1); HTTP is allowed on loopback only.",
    values: [
      "http://createos.example",
      "http://127.0.0.2",
      "ftp://localhost",
      "https://user@createos.example",
      "https://:password@createos.example",
      "https://createos.example/?query",
      "https://createos.example/#fragment",
      "https://createos.example/v2",
      "https://createos.example/v1/x",
      "https://createos.example//v1",
    ],
  },
  text("shape"),
  { field: "shape", message: "CreateOS requires a shape from its shape catalog.", values: [null, undefined] },
  {
    field: "timeoutMs",
    message: "timeoutMs must be an integer between 1 and 86400000.",
    values: [0, -1, 1.5, 86_400_001, Number.NaN, Infinity, "1000", true, 1n, {}, []],
  },
  {
    field: "reuseLease",
    message: "reuseLease must be a boolean.",
    values: [0, 1, "true", "", {}, [], new Boolean(true)],
  },
  {
    field: "autoPauseAfterSeconds",
    message: "autoPauseAfterSeconds must be an integer between 60 and 86400.",
    values: [0, 59, 86_401, 60.5, "60", true, Number.NaN, {}, []],
  },
  {
    field: "rootfsByAdapter",
    message: "rootfsByAdapter must be an object of adapter names to root filesystems.",
    values: ["adapter-a", 1, true, ["adapter-a"], Symbol("s")],
  },
  {
    field: "rootfsByAdapter",
    message: "rootfsByAdapter must contain non-empty adapter and root filesystem strings.",
    values: [
      { "": "a" },
      { " ": "a" },
      { "adapter-a": "" },
      { "adapter-a": 1 },
      { "adapter-a": null },
      { "adapter-a": "b\n" },
      { "adapter-a\0": "b" },
    ],
  },
  {
    field: "egressAllowlist",
    message: "egressAllowlist must be an array of non-empty host or CIDR strings.",
    values: ["a.example", {}, 1, true, [""], [" "], [1], [null], ["a", undefined], ["a\nb"], ["a\r"], ["a\0b"]],
  },
  text("apiKey"),
  text("rootfs"),
  text("region"),
];

/** A configuration with nothing wrong in it. */
export const sound = { apiUrl: "https://createos.example", shape: "s-1vcpu-1gb", apiKey: "key" };

/** A configuration whose first fault is the one of that number; every field that is looked at later has one as well. */
export function faultyFrom(place: number): Record<string, unknown> {
  const config: Record<string, unknown> = { ...sound };
  for (const { field, values } of configFaults.slice(place + 1)) config[field] = values[0];
  const fault = configFaults[place];
  if (fault !== undefined) config[fault.field] = fault.values[0];
  return config;
}
