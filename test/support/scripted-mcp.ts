/**
 * A small MCP server over Streamable HTTP on a real port, whose tools the test provides. It lists what it is told to,
 * answers with a function's result, and remembers its calls.
 */

export interface ScriptedCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export type AnswerCall = (call: ScriptedCall) => object | Promise<object>;

export interface ScriptedMcp {
  readonly url: string;
  /** Every tool call, oldest first. */
  readonly calls: readonly ScriptedCall[];
  /** Every method that was requested or notified. */
  readonly heard: readonly string[];
  /** Sets what is listed from now on: names, or whole tools. */
  list(tools: readonly (string | object)[]): void;
  /** Sets how calls are answered from now on. Default: `{name} {input as JSON}` as text. */
  answer(answer: AnswerCall): void;
  /** Holds back lists until the returned function is called. */
  holdLists(): () => void;
  close(): Promise<void>;
}

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: Readonly<Record<string, unknown>>;
    readonly protocolVersion?: string;
  };
}

export const text = (words: string): object => ({ content: [{ type: "text", text: words }] });

export function startScriptedMcp(tools: readonly (string | object)[] = ["echo"]): ScriptedMcp {
  let listed = tools;
  let answer: AnswerCall = ({ name, input }) => text(`${name} ${JSON.stringify(input)}`);
  let lists = Promise.resolve();
  const calls: ScriptedCall[] = [];
  const heard: string[] = [];

  async function resultOf({ method, params }: Message): Promise<object | undefined> {
    switch (method) {
      case "initialize":
        return {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "scripted", version: "1" },
        };
      case "tools/list":
        await lists;
        return {
          tools: listed.map((tool) =>
            typeof tool === "string" ? { name: tool, inputSchema: { type: "object" } } : tool,
          ),
        };
      case "tools/call": {
        const call = { name: params?.name ?? "", input: params?.arguments ?? {} };
        calls.push(call);
        return answer(call);
      }
      default:
        return undefined;
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const message = (await request.json()) as Message;
      heard.push(message.method ?? "answer");
      if (message.id === undefined) return new Response(null, { status: 202 });
      const result = await resultOf(message);
      const { id } = message;
      return Response.json(
        result
          ? { jsonrpc: "2.0", id, result }
          : { jsonrpc: "2.0", id, error: { code: -32_601, message: "Method not found" } },
      );
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}/mcp`,
    calls,
    heard,
    list(now) {
      listed = now;
    },
    answer(now) {
      answer = now;
    },
    holdLists() {
      const { promise, resolve } = Promise.withResolvers<void>();
      lists = promise;
      return resolve;
    },
    close: () => server.stop(true),
  };
}
