/**
 * An MCP server over stdio that answers calls of its one tool, `tell`, with given bytes, so it can stop anywhere,
 * even within a character. Its one argument is JSON: `RawMcpStep`s in order.
 */

/**
 * Bytes in base64, each sent in a separate write, or what the program does next. `endless` writes a line without an
 * end.
 */
export type RawMcpStep = { readonly bytes: string } | "exit" | "kill" | "hang" | "endless";

/** The placeholder for the call's id in the bytes. */
export const CALL_ID = "4711471147";

const APART_MS = 5;

async function play(steps: readonly RawMcpStep[], id: number): Promise<void> {
  for (const step of steps) {
    if (step === "hang") return;
    if (step === "exit") process.exit(3);
    if (step === "kill") process.kill(process.pid, "SIGKILL");
    if (step === "endless") {
      for (;;) {
        process.stdout.write("x".repeat(65_536));
        await Bun.sleep(0);
      }
    }
    if (typeof step === "object") {
      const bytes = Buffer.from(step.bytes, "base64").toString("latin1").replaceAll(CALL_ID, String(id));
      process.stdout.write(Buffer.from(bytes, "latin1"));
      await Bun.sleep(APART_MS);
    }
  }
}

async function serve(steps: readonly RawMcpStep[]): Promise<void> {
  const send = (id: number, result: object) =>
    void process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Bun.stdin.stream()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { id, method, params } = JSON.parse(line);
      if (method === "tools/call") await play(steps, id);
      else if (id !== undefined) send(id, mcpResult(method, params));
    }
  }
}

/** The answers of a server with one tool, `tell`, to what precedes a call. */
export function mcpResult(method: string, params: { readonly protocolVersion?: string } | undefined): object {
  if (method === "tools/list") return { tools: [{ name: "tell", inputSchema: { type: "object" } }] };
  return {
    protocolVersion: params?.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "raw", version: "1" },
  };
}

if (import.meta.main) await serve(JSON.parse(process.argv[2] ?? "[]"));
