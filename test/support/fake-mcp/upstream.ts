/** What the scripted upstreams answer over any transport. Written by hand, so that they can break every rule. */

export interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export type Send = (message: Readonly<Record<string, unknown>>) => void;

/** How the list of tools goes wrong; `plain` does not. */
export type ListScript = "plain" | "looping" | "endless" | "flood" | "hostile" | "refused";

export interface Script {
  readonly list?: ListScript;
  /** The protocol version that it claims to speak. Default: the requested one. */
  readonly version?: string;
}

const TOOLS = [
  "echo",
  "env",
  "heard",
  "exit",
  "hang",
  "fail",
  "progress",
  "big",
  "image",
  "wrong",
  "garbled",
  "task",
  "structured",
  "change",
  "ask",
  "pid",
].map((name) => ({ name, inputSchema: { type: "object" } }));

/** One session's upstream. Handles a message and answers through `send`, possibly later. */
export class Upstream {
  readonly #script: Script;
  readonly #send: Send;
  /** Every received message that is not a request, for the tool `heard`. */
  readonly #heard: Message[] = [];
  #pages = 0;

  constructor(script: Script, send: Send) {
    this.#script = script;
    this.#send = send;
  }

  /** @returns `exit` if the process should exit; the transport does that */
  take(message: Message): "exit" | undefined {
    const { id, method, params } = message;
    if (id === undefined || method === undefined) {
      this.#heard.push(message);
      return undefined;
    }
    const answer = (result: unknown): void => this.#send({ jsonrpc: "2.0", id, result });
    const refuse = (code: number, text: string): void =>
      this.#send({ jsonrpc: "2.0", id, error: { code, message: text } });
    if (method === "initialize") {
      answer({
        protocolVersion: this.#script.version ?? params?.protocolVersion,
        capabilities: this.#script.list === "refused" ? {} : { tools: { listChanged: true } },
        serverInfo: { name: "fake", version: "1" },
      });
    } else if (method === "tools/list") {
      if (this.#script.list === "refused") refuse(-32601, "Method not found");
      else answer(this.#page(params?.cursor));
    } else if (method === "tools/call") {
      return this.#call(params ?? {}, answer, refuse);
    } else {
      refuse(-32601, "Method not found");
    }
    return undefined;
  }

  #page(cursor: unknown): unknown {
    this.#pages += 1;
    switch (this.#script.list) {
      case "looping":
        return {
          tools: [{ name: `tool${this.#pages}`, inputSchema: {} }],
          nextCursor: cursor === "a" ? "b" : "a",
        };
      case "endless":
        return { tools: [{ name: `tool${this.#pages}` }], nextCursor: `page${this.#pages}` };
      case "flood":
        return { tools: Array.from({ length: 2_500 }, (_, index) => ({ name: `tool${index}` })) };
      case "hostile":
        return { tools: hostileTools() };
      default:
        return cursor === "rest"
          ? { tools: TOOLS.slice(5) }
          : { tools: TOOLS.slice(0, 5), nextCursor: "rest" };
    }
  }

  #call(
    params: Readonly<Record<string, unknown>>,
    answer: (result: unknown) => void,
    refuse: (code: number, text: string) => void,
  ): "exit" | undefined {
    const input = asRecord(params.arguments);
    const text = (text: string): void => answer({ content: [{ type: "text", text }] });
    switch (params.name) {
      case "echo":
        text(String(input.text));
        break;
      case "env":
        text(JSON.stringify(process.env));
        break;
      case "heard":
        text(JSON.stringify(this.#heard));
        break;
      case "exit":
        return "exit";
      case "hang":
        break;
      case "fail":
        refuse(-32000, `refused with ${process.env.SECRET ?? input.text}`);
        break;
      case "progress":
        for (let step = 1; step <= Number(input.steps); step += 1) this.#progress(params, step, input);
        if (input.hang !== true) text("done");
        break;
      case "big":
        text("x".repeat(Number(input.characters)));
        break;
      case "image":
        answer({
          content: [{ type: "image", mimeType: "image/png", data: "A".repeat(Number(input.characters)) }],
        });
        break;
      case "wrong":
        answer(input.result);
        break;
      case "garbled":
        answer("no object");
        break;
      case "task":
        answer({ task: { taskId: "1", status: "working" }, content: [] });
        break;
      case "structured":
        answer({ content: [], structuredContent: input.value });
        break;
      case "change":
        for (let times = 0; times < 20; times += 1) {
          this.#send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
        }
        text("changed");
        break;
      case "ask":
        this.#send({
          jsonrpc: "2.0",
          id: "mine",
          method: "sampling/createMessage",
          params: { messages: [] },
        });
        text("asked");
        break;
      case "pid":
        text(String(process.pid));
        break;
      default:
        refuse(-32602, `no tool ${String(params.name)}`);
    }
    return undefined;
  }

  #progress(
    params: Readonly<Record<string, unknown>>,
    step: number,
    input: Readonly<Record<string, unknown>>,
  ): void {
    const progressToken = asRecord(params._meta).progressToken;
    const said = {
      progressToken,
      progress: step,
      total: input.steps,
      message: `step ${step} ${input.text ?? ""}`,
    };
    this.#send({ jsonrpc: "2.0", method: "notifications/progress", params: said });
  }
}

function hostileTools(): unknown[] {
  return [
    {
      name: "good",
      title: "Good",
      description: "fine",
      inputSchema: { type: "object", properties: { a: {} } },
    },
    { name: "long", description: "d".repeat(10_000), inputSchema: "none" },
    { name: "huge", inputSchema: { type: "object", description: "s".repeat(100_000) } },
    { name: "wipe", annotations: { destructiveHint: true, readOnlyHint: "yes", title: "Wipe", more: {} } },
    { name: "two words" },
    { name: "two/words" },
    { name: "good" },
    { name: "" },
    { name: 7 },
    "no tool",
    { name: "leaks-hunter22-long", description: "hunter22-long" },
    { name: "tells", description: "the password is hunter22-long" },
  ];
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}
