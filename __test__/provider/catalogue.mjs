// Shapes and root filesystems of the provider contract, section 12, and the egress rule forms of section 11.1.

const gib = 1024;
/** @type {{id: string, vcpu: number, mem_mib: number, default_disk_mib: number, cpu_quota_pct?: number}[]} */
export const shapes = [
  { id: "s-1vcpu-256mb", vcpu: 1, mem_mib: 256, default_disk_mib: 10 * gib },
  { id: "s-0.25vcpu-512mb", vcpu: 1, mem_mib: 512, default_disk_mib: 10 * gib, cpu_quota_pct: 25 },
  { id: "s-0.5vcpu-1gb", vcpu: 1, mem_mib: gib, default_disk_mib: 10 * gib, cpu_quota_pct: 50 },
  ...[
    [1, 1],
    [1, 2],
    [2, 2],
    [2, 4],
    [4, 4],
    [4, 8],
    [8, 8],
    [8, 16],
  ].map(([vcpu = 1, mem = 1]) => ({
    id: `s-${vcpu}vcpu-${mem}gb`,
    vcpu,
    mem_mib: mem * gib,
    default_disk_mib: 10 * gib,
  })),
];

export const rootfs = {
  rootfs: ["devbox:1", "ubuntu:26.04", "debian:13", "alpine:3.20", "desktop:1"],
  default: "devbox:1",
  entries: [
    { name: "devbox:1", description: "Ubuntu with bash, sshd and development tools" },
    { name: "ubuntu:26.04" },
    { name: "debian:13" },
    { name: "alpine:3.20" },
    { name: "desktop:1" },
  ],
};

const host = /^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$/;
const cidr = /^[0-9A-Fa-f.:]+\/\d{1,3}(:\d{1,5})?$/;
const ipv6 = /^\[?[0-9A-Fa-f:]+\]?(:\d{1,5})?$/;

/** @param {unknown} rule */
export function isEgressRule(rule) {
  return typeof rule === "string" && (rule === "*" || host.test(rule) || cidr.test(rule) || ipv6.test(rule));
}
