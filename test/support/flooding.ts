/**
 * Answers every request with endless events, on a port that it prints. It runs in a separate process, because sending
 * from the test's process would yield the event loop to others. Arguments: the event, and what is sent before it.
 */
const [event = "", first = ""] = process.argv.slice(2);
const encoder = new TextEncoder();
const part = encoder.encode(event.repeat(Math.ceil(60_000 / event.length)));
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  idleTimeout: 0,
  fetch(request) {
    // Notifications, over MCP.
    if (new URL(request.url).pathname === "/mcp" && request.method === "POST") {
      return new Response(null, { status: 202 });
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(first)),
      pull: (controller) => controller.enqueue(part),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  },
});
console.log(server.port);
