import { join } from "node:path";
import { requestText } from "../../load/request.ts";
import { freePort } from "../../processes/program.ts";
import { chunks, SHORT_CHUNKS } from "../../servers/script.ts";
import type { Workshop } from "../../workshop.ts";
import { nodeCommand, type PeerServer, type Product, serverSettings } from "../product.ts";

const FOLDER = import.meta.dir;
const PLATFORM = `${process.platform}-${process.arch}`;
const BINARY = join(
  ...[FOLDER, "node_modules", "@restatedev", `restate-server-${PLATFORM}`, "bin", "restate-server"],
);

/** Restate's server with a durable handler. It returns the whole answer, since Restate itself does not stream. */
export const restate: Product = {
  id: "restate",
  name: "Restate",
  folder: FOLDER,
  package: "@restatedev/restate-server",
  runtime: "node",
  everyMs: 2_000,
  start,
  run: (_, prompt) => ({
    request: requestText("POST", "/bench/run", { body: { prompt } }),
    expect: { status: 200, first: "word-0000", texts: [`"${chunks(SHORT_CHUNKS).join("")}"`] },
  }),
};

/** Starts the handler's process and Restate's own, with default settings, and registers one with the other. */
async function start(workshop: Workshop, upstream: number): Promise<PeerServer> {
  const [handlerPort, port, admin, node] = [freePort(), freePort(), freePort(), freePort()];
  const handler = await workshop.program({
    command: nodeCommand(FOLDER),
    port: handlerPort,
    env: { ...serverSettings(handlerPort, upstream), RESTATE_LOGGING: "WARN" },
  });
  const server = await workshop.program({
    command: [BINARY, "--no-logo", "--base-dir", workshop.folder()],
    port: admin,
    env: {
      RESTATE_NODE_NAME: "bench",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${port}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      // It looks for its own newest release at each start, and reports an error without a network.
      RESTATE_LOG_FILTER: "error,octocrab=off",
      RESTATE_DISABLE_TELEMETRY: "true",
      DO_NOT_TRACK: "1",
    },
  });
  const response = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri: `http://127.0.0.1:${handlerPort}` }),
  });
  if (!response.ok) throw new Error(`Restate did not accept the handler: ${await response.text()}`);
  return {
    pid: server.pid,
    otherPids: [handler.pid],
    port,
    async stop() {
      await server.stop();
      await handler.stop();
    },
  };
}
