import { expect, test } from "bun:test";
import { startGateway } from "../support/gateway.ts";
import { rawRequest } from "./stream-support.ts";

test("a body declared larger than every limit is refused with a problem before any of it is read", async () => {
  const gateway = await startGateway();
  for (const length of [65 * 1024 * 1024, 10 * 1024 ** 3]) {
    const headers = ["Content-Type: application/json", `Content-Length: ${length}`];
    const client = rawRequest(gateway, { method: "POST", path: "/v1/agents", headers });
    const head = await client.head();
    expect(head).toStartWith("HTTP/1.1 413");
    expect(head).toMatch(/content-type: application\/problem\+json/i);
    await client.saw("body_too_large");
    client.socket.destroy();
  }
  await gateway.stop();
});
