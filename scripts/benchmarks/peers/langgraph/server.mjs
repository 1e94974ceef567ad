/**
 * What `langgraphjs dev` starts, with its ten workers, but without watching files. It keeps everything in memory. The
 * server for production is only available as a container with a licence, PostgreSQL and Redis.
 */
import { startServer } from "@langchain/langgraph-api/server";

await startServer({
  host: "127.0.0.1",
  port: Number(process.env.PORT),
  nWorkers: 10,
  cwd: process.cwd(),
  graphs: { bench: `${import.meta.dirname}/graph.mjs:graph` },
});
