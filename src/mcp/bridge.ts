import type { Readable, Writable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import type { ProblemCode } from "../base/errors.ts";
import { findExcess, MAX_MEMBERS, MAX_NESTING, outlineJson } from "../base/json-limits.ts";
import { Carrier } from "./bridge/carrier.ts";
import { type InputLine, LineReader } from "./bridge/lines.ts";
import { readMessages, requestId } from "./bridge/message.ts";
import type { DoorAddress } from "./bridge/session.ts";

export interface BridgeOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** The URL of the MCP endpoint, and how requests are sent to it. */
  readonly door: DoorAddress;
  readonly clock: Clock;
  /** Called with warnings for the person at the terminal. */
  readonly warn: (message: string) => void;
  /** Aborted when the process must end: pending requests are abandoned. */
  readonly signal: AbortSignal;
}

/** How long to wait for pending answers after the client has closed its input. */
const DRAIN_MS = 60_000;
/** Maximum bytes of a message that the server accepts (contract, section 3). */
const MESSAGE_BYTES = 10 * 1024 * 1024;
/** Maximum bytes of a line that is read, so that its sender can be answered. */
const LINE_BYTES = 64 * 1024 * 1024;
/** Maximum number of characters being sent to the server. Above this, the client's next messages wait. */
const MOST_SENDING = 64 * 1024 * 1024;

/**
 * Carries MCP messages between a client on standard input and output and the server's Streamable HTTP endpoint. So
 * clients of both transports use the same code path. Resolves when the input has ended and all requests are answered,
 * or when told to end. Does not close the input and output streams.
 */
export async function bridge(options: BridgeOptions): Promise<void> {
  const { input, output, door, clock, warn, signal } = options;
  const ended = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const carrier = new Carrier({ door, clock, warn, toClient: writer(output, gone.promise) });
  const lines = new LineReader(LINE_BYTES);
  const take = (line: InputLine): void => {
    if (line === null) warn(`a line of more than ${LINE_BYTES / 1024 / 1024} MiB was skipped`);
    else if (line.trim() !== "") takeLine(line.trim(), carrier, warn);
  };
  const read = (chunk: Uint8Array): void => {
    for (const line of lines.push(chunk)) take(line);
    if (carrier.bytes > MOST_SENDING) input.pause();
  };
  carrier.onSent = () => {
    if (carrier.bytes <= MOST_SENDING && input.isPaused() && !signal.aborted) input.resume();
  };
  signal.addEventListener("abort", () => gone.resolve(), { once: true });
  if (signal.aborted) gone.resolve();
  for (const stream of [output, input]) stream.once("error", gone.resolve);
  output.once("close", gone.resolve);
  input.once("close", ended.resolve);
  input.once("end", () => {
    take(lines.rest());
    ended.resolve();
  });
  input.on("data", read);

  await Promise.race([ended.promise, gone.promise]);
  const late = Promise.withResolvers<void>();
  const cancel = clock.after(DRAIN_MS, late.resolve);
  await Promise.race([carrier.done(), late.promise, gone.promise]);
  cancel();
  input.off("data", read);
  input.pause();
  await carrier.close();
}

function takeLine(line: string, carrier: Carrier, warn: (message: string) => void): void {
  const fault = faultOf(line);
  const messages = readMessages(fault ? outlineJson(line) : line);
  if (!messages) {
    warn("a line that is not a JSON-RPC message was skipped");
    return;
  }
  for (const message of messages) {
    const id = requestId(message);
    if (!fault) carrier.take(message);
    else if (id !== undefined) carrier.refuse(id, fault.message, fault.code);
    else warn(`a message was skipped: ${fault.message}`);
  }
}

/**
 * Why the server would refuse a line. Such a line is not sent, because the server may close the connection before it
 * has read all of it.
 */
function faultOf(line: string): { readonly code: ProblemCode; readonly message: string } | undefined {
  if (Buffer.byteLength(line) > MESSAGE_BYTES) {
    return {
      code: "body_too_large",
      message: `The message is too large: at most ${MESSAGE_BYTES} bytes are allowed.`,
    };
  }
  const excess = findExcess(line);
  if (excess === "levels") {
    return {
      code: "nested_too_deep",
      message: `The message is nested too deeply: at most ${MAX_NESTING} levels are allowed.`,
    };
  }
  if (excess === "members") {
    return {
      code: "body_too_large",
      message: `The message has too many members: at most ${MAX_MEMBERS} are allowed.`,
    };
  }
  return undefined;
}

/**
 * Returns a function that writes lines. Its promise resolves when the client has read enough to get more, or is gone.
 */
function writer(output: Writable, gone: Promise<void>): (text: string) => Promise<void> {
  let draining: Promise<void> | null = null;
  return async (text) => {
    if (output.destroyed || output.write(`${text}\n`)) return;
    draining ??= Promise.race([new Promise<void>((resolve) => output.once("drain", resolve)), gone]).then(
      () => {
        draining = null;
      },
    );
    await draining;
  };
}
