/**
 * A scripted MCP server over stdio. Arguments: its behaviour, and the script as JSON.
 *
 * - `plain`
 * - `greets`: first prints a few lines that are not JSON-RPC
 * - `garbage`: prints nothing but such lines
 * - `silent`: never answers
 * - `ends`: prints why, and ends
 * - `blares`: prints a line of 17 MiB that never ends
 * - `deaf`: completes the handshake, then never reads again
 * - `stubborn`: ends neither by itself nor on SIGTERM
 * - `family`: has a child that does not end by itself
 */
import { type Script, Upstream } from "./upstream.ts";

const [behaviour = "plain", script = "{}"] = process.argv.slice(2);
const send = (message: Readonly<Record<string, unknown>>): void => {
  process.stdout.write(`${JSON.stringify(message)}\n`);
};
const upstream = new Upstream(JSON.parse(script) as Script, send);

if (behaviour === "ends") {
  process.stderr.write(`cannot log in with ${process.env.SECRET}\n`);
  process.exit(3);
}
// These print their pid, because nobody can ask them for it.
if (["silent", "deaf", "stubborn"].includes(behaviour)) process.stderr.write(`pid ${process.pid}\n`);
if (behaviour === "greets") process.stdout.write("Welcome!\nStarting {…}\n\n[1]\n");
if (behaviour === "garbage") setInterval(() => process.stdout.write("no json\n".repeat(20)), 1);
if (behaviour === "blares") process.stdout.write("x".repeat(17 * 1024 * 1024));
if (behaviour === "stubborn") {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1_000);
}
if (behaviour === "family") {
  // A shell in the same process group that continues after its input has ended.
  const child = Bun.spawn(["/bin/sh", "-c", "while :; do sleep 1; done"], {
    stdio: ["ignore", "ignore", "ignore"],
  });
  process.stderr.write(`child ${child.pid}\n`);
  child.unref();
}

if (behaviour !== "garbage" && behaviour !== "blares") {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of Bun.stdin.stream()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (behaviour === "silent") continue;
      const message = JSON.parse(line);
      if (upstream.take(message) === "exit") process.exit(1);
      // Stops reading for good here, but leaves its output open.
      if (behaviour === "deaf" && message.method === "notifications/initialized") await new Promise(() => {});
    }
  }
}
