/** A server process with a limit on open files, and clients that keep connections to it open. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { fromSources, type Program, type ServerProcess, serve, tempDir } from "../support/process.ts";
import { settings } from "./support.ts";

/** Runs the program under a limit of open files that it cannot raise. The process keeps its id. */
export async function withOpenFiles(limit: number, program?: Program): Promise<Program> {
  return ["/bin/sh", "-c", `ulimit -n ${limit} && exec "$@"`, "sh", ...(program ?? (await fromSources()))];
}

export interface LimitedServer {
  readonly process: ServerProcess;
  readonly fake: FakeModel;
  readonly port: number;
  readonly data: string;
  readonly token: string;
  /** Uses a connection that is kept open for the next call, unless the client is a newcomer each time. */
  call(method: string, path: string, body?: object, client?: "regular" | "newcomer"): Promise<Response>;
  /** Descriptors that the process has open now. */
  openFiles(): number;
  stop(): Promise<void>;
}

export async function serveWithOpenFiles(limit: number, of?: Program): Promise<LimitedServer> {
  const directory = tempDir();
  const data = join(directory.path, "gatehouse-data");
  const fake = startFakeModel();
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(
    join(data, "gatehouse.yaml"),
    `${settings(fake)}\nlimits: { requests_per_minute: 1000000, concurrent_tasks: 60 }\n`,
  );
  const process = await serve([], { cwd: directory.path, program: await withOpenFiles(limit, of) });
  const token = readFileSync(join(data, "admin.token"), "utf8").trim();
  const { port } = new URL(process.url);
  const server: LimitedServer = {
    ...{ process, fake, data, token, port: Number(port) },
    call: (method, path, body, client = "newcomer") =>
      fetch(process.url + path, {
        method,
        keepalive: client === "regular",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    openFiles: () => readdirSync(`/proc/${process.pid}/fd`).length,
    async stop() {
      await process.end("SIGKILL");
      await fake.close();
      directory.remove();
    },
  };
  await server.call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
  return server;
}

/** Clients that send a few bytes and then neither read nor close. */
export class Crowd {
  readonly #sockets = new Set<Socket>();
  /** Connections that the server has closed. */
  ended = 0;

  /** @returns once the machine has connected all of them; the server may not have accepted them yet */
  async join(port: number, count: number, bytes: string): Promise<void> {
    const connected = Array.from({ length: count }, () => {
      const socket = connect(port, "127.0.0.1");
      this.#sockets.add(socket);
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.on("connect", () => {
        socket.write(bytes);
        resolve();
      });
      socket.on("error", () => resolve());
      socket.on("data", () => {});
      socket.on("close", () => {
        if (this.#sockets.delete(socket)) this.ended += 1;
      });
      return promise;
    });
    await Promise.all(connected);
  }

  get open(): number {
    return this.#sockets.size;
  }

  leave(): void {
    for (const socket of this.#sockets) {
      this.#sockets.delete(socket);
      socket.destroy();
    }
  }
}
