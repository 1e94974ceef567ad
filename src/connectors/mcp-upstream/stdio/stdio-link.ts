import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { type JSONRPCMessage, JSONRPCMessageSchema } from "@modelcontextprotocol/sdk/types.js";
import { findExcess, outlineJson, parseJson } from "../../../base/json-limits.ts";
import { openFilesReserve } from "../../../base/open-files/reserve.ts";
import type { StdioTransport } from "../../definition/definition.ts";
import { ConnectorError } from "../../source.ts";
import { closed, jsonTooLarge, MESSAGE_JSON, shown } from "../faults.ts";
import { UpstreamLink } from "../link.ts";
import type { UpstreamParts } from "../parts.ts";
import { chunksOf } from "./chunks.ts";
import { childEnvironment } from "./environment.ts";
import { LineSplitter, ProgramLineTooLong } from "./lines.ts";
import { endGroup } from "./process-group.ts";
import type { ProgramUser } from "./program-users.ts";
import { StderrLog } from "./stderr-log.ts";

/** Maximum number of bytes in one message: higher than the limit on an answer. */
const LINE_LIMIT = 16 * 1024 * 1024;
/** Maximum number of bytes queued for a child that does not read its input. */
const QUEUE_LIMIT = 64 * 1024 * 1024;
/** File descriptors that a child takes while it starts: two per pipe, and one to be notified of its end. */
const PER_CHILD = 8;
/** How long to wait for output that a child wrote before it ended: one of its own children may hold the pipe open. */
const DRAIN_MS = 500;

/**
 * MCP over a child's standard input and output, one JSON-RPC message per line (specification 2025-11-25, "stdio").
 * Replaces the SDK's transport: the child gets only declared variables, it is ended with everything that it started,
 * and both directions are limited.
 */
export class StdioLink extends UpstreamLink {
  readonly #transport: StdioTransport;
  readonly #lines = new LineSplitter(LINE_LIMIT);
  readonly #said: StderrLog;
  readonly #collected = Promise.withResolvers<void>();
  #child: ChildProcessWithoutNullStreams | undefined;
  #user: ProgramUser | null = null;
  #queued = 0;

  constructor(transport: StdioTransport, parts: UpstreamParts) {
    super(parts);
    this.#transport = transport;
    this.#said = new StderrLog(parts);
  }

  /** The id of the process group that holds the child and everything that it started. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    const user = (await this.parts.programUsers?.take()) ?? null;
    if (this.closed) {
      await user?.release();
      throw closed(this.parts);
    }
    this.#user = user;
    await this.#spawn(user);
  }

  #spawn(user: ProgramUser | null): Promise<void> {
    const { command, args } = this.#transport;
    const own = this.parts.environment ?? process.env;
    const env = childEnvironment(this.#transport, own, user ? { home: user.home } : {});
    // The user may not be permitted to enter the server's working directory.
    const as = user ? { uid: user.uid, gid: user.gid, cwd: user.home } : {};
    return new Promise((resolve, reject) => {
      let child: ChildProcessWithoutNullStreams;
      try {
        // Detached: a separate process group, which can be ended as a whole and does not receive Ctrl-C from our
        // terminal.
        child = openFilesReserve.lend(PER_CHILD, () =>
          spawn(command, args, { ...as, env, stdio: "pipe", detached: true, windowsHide: true }),
        );
      } catch (error) {
        reject(this.#cannotStart(error));
        return;
      }
      this.#child = child;
      child.once("spawn", () => resolve());
      child.on("error", (error) => {
        reject(this.#cannotStart(error));
        this.lose(this.#cannotStart(error));
      });
      const read = Promise.all([this.#readMessages(child.stdout), this.#said.read(child.stderr)]);
      // A broken pipe means that the child has ended, which has its own event and error.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {});
      child.once("exit", (code, signal) => this.#exited(read, code, signal));
    });
  }

  protected write(message: JSONRPCMessage): Promise<void> {
    const child = this.#child;
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`, "utf8");
    return new Promise((resolve, reject) => {
      if (!child?.stdin.writable) throw this.#lost("no longer reads its input");
      if (this.#queued + bytes.length > QUEUE_LIMIT) {
        throw this.#lost(`does not read its input: ${QUEUE_LIMIT / 1024 / 1024} MiB are waiting`);
      }
      this.#queued += bytes.length;
      child.stdin.write(bytes, (error) => {
        this.#queued -= bytes.length;
        if (error) reject(this.#lost("no longer reads its input"));
        else resolve();
      });
    });
  }

  protected async release(): Promise<void> {
    await this.#end();
    await this.#user?.release();
  }

  async #end(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.stdin.end();
    if (process.platform === "win32") child.kill();
    // Until the child is collected, it counts as one of our running processes.
    else if (await endGroup(child.pid, this.parts.clock)) await this.#collected.promise;
    // A process of the child that left the group may hold these open.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  }

  setProtocolVersion(): void {
    // This transport's messages are the same in all versions.
  }

  async #readMessages(output: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of chunksOf(output)) {
        // A child that is ending may still write.
        if (this.closed) continue;
        for (const line of this.#lines.push(chunk)) {
          const wait = this.parts.inflow.take({
            bytes: line.length,
            lines: 1,
            messages: line === "" ? 0 : 1,
          });
          if (wait) await wait;
          if (this.closed) break;
          this.#read(line);
        }
      }
    } catch (error) {
      if (!(error instanceof ProgramLineTooLong)) throw error;
      const text = `The program of the connector ${this.parts.name} wrote a line of more than ${LINE_LIMIT / 1024 / 1024} MiB.`;
      this.lose(new ConnectorError("too_large", text));
    }
  }

  #read(line: string): void {
    if (line.trim() === "") return;
    const excess = findExcess(line, MESSAGE_JSON);
    let value: unknown;
    try {
      value = excess ? parseJson(outlineJson(line)) : JSON.parse(line);
    } catch {
      // Programs often print a greeting to standard output. Only a program that prints nothing else is ended.
      this.garbled();
      return;
    }
    if (excess) {
      if (hasId(value)) this.fail(value.id, jsonTooLarge(excess, this.parts));
      this.garbled();
      return;
    }
    const message = JSONRPCMessageSchema.safeParse(value);
    if (message.success) {
      this.received(message.data);
      return;
    }
    if (hasId(value)) this.fail(value.id, this.invalid("an answer that is not JSON-RPC"));
    this.garbled();
  }

  /** @param read resolves when all output has been read */
  #exited(read: Promise<unknown>, code: number | null, signal: NodeJS.Signals | null): void {
    this.#collected.resolve();
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    const end = (): void => {
      cancel();
      const output = this.#said.tail() || undefined;
      const { name, log } = this.parts;
      if (!this.closed) log.warn("a connector's program ended", { connector: name, how, output });
      const text = `The program of the connector ${name} ended ${how}.`;
      this.lose(new ConnectorError("unreachable", text, { output }));
    };
    const cancel = this.parts.clock.after(DRAIN_MS, end);
    void read.then(end);
  }

  #lost(what: string): ConnectorError {
    return new ConnectorError("unreachable", `The program of the connector ${this.parts.name} ${what}.`);
  }

  #cannotStart(error: unknown): ConnectorError {
    const { command } = this.#transport;
    const why = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    const text =
      why === "ENOENT"
        ? `was not found${command.includes("/") ? "" : " on PATH"}`
        : `cannot be started (${why})${this.#user ? `: it runs as user ${this.#user.uid}, who must be able to read and execute it (see connectors.stdio_user)` : ""}`;
    const program = shown(JSON.stringify(command), this.parts);
    return new ConnectorError(
      "unreachable",
      `The program ${program} of the connector ${this.parts.name} ${text}.`,
    );
  }
}

function hasId(value: unknown): value is { readonly id: number } {
  return typeof value === "object" && value !== null && "id" in value && typeof value.id === "number";
}
