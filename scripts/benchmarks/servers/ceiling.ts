/** The least that a server can do, which shows how fast the load generator itself is. */
import { answerLines } from "../processes/lines.ts";

const BODY = "ok";

await answerLines(async () => {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: () => new Response(BODY),
  });
  return { port: server.port };
});
