// Commands use few connections: one that has brought a command's output to its end serves the next command.
import { once } from "node:events";
import net, { type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { executor, place } from "./support/executes.js";
import { provide } from "./support/providers.js";

/** The way to a server, which counts who takes it. */
async function counting(target: number) {
  const counted = { connections: 0, url: "" };
  const sockets = new Set<net.Socket>();
  const way = net.createServer((socket) => {
    counted.connections += 1;
    const onward = net.connect(target, "127.0.0.1");
    for (const end of [socket, onward]) {
      sockets.add(end);
      end.on("error", () => {});
    }
    socket.pipe(onward).pipe(socket);
  });
  await once(way.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    way.close();
  });
  counted.url = `http://127.0.0.1:${(way.address() as AddressInfo).port}`;
  return counted;
}

test("ten commands in a row share a few connections", async () => {
  const provider = await provide();
  const at = await place(provider);
  const way = await counting(Number(new URL(provider.url).port));
  const params = at.params({ command: "true" }, { apiUrl: way.url });
  const metadata = { ...(params.lease as { metadata: object }).metadata, apiUrl: way.url };
  const lease = { providerLeaseId: at.id, metadata };
  const driver = executor();
  for (let left = 10; left > 0; left -= 1) {
    expect(await driver.execute({ ...params, lease })).toMatchObject({ exitCode: 0 });
  }
  expect(way.connections).toBeLessThanOrEqual(3);
  expect(provider.requests.filter(({ route }) => route === "process.connect")).toHaveLength(10);
});
