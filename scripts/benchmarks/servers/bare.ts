/**
 * The cost of the same answers without anything around them: Elysia, set up as in Gatehouse, but without
 * authentication, limits, ledger and disk.
 */
import { Elysia } from "elysia";
import Type from "typebox";
import { Compile } from "typebox/compile";
import { answerLines } from "../processes/lines.ts";
import { bareConfig } from "./config.ts";

/** As in `src/http/answer/sse.ts`: the headers are sent with the first byte of the body. */
const OPENED = new TextEncoder().encode(": open\n\n");

/** https://standardschema.dev */
interface StandardSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: object; readonly output: object };
    validate(value: unknown): { value: object } | { issues: { message: string }[] };
  };
}

function standardSchema(schema: object): StandardSchema {
  const compiled = Compile(Type.Unsafe<object>(schema));
  return {
    "~standard": {
      version: 1,
      vendor: "typebox",
      validate: (value) =>
        compiled.Check(value) ? { value } : { issues: [{ message: "is not a task's request" }] },
    },
  };
}

function eventStream(frames: readonly Uint8Array[] | null, waitMs: number): Response {
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      controller.enqueue(OPENED);
      if (frames === null) return; // open and quiet, until the reader leaves
      await Bun.sleep(waitMs);
      for (const frame of frames) controller.enqueue(frame);
      controller.close();
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

await answerLines(async (message) => {
  const { agent = {}, taskSchema = {}, accepted = {}, frames = [], waitMs = 0 } = bareConfig.parse(message);
  const encoder = new TextEncoder();
  const encoded = frames.map((frame) => encoder.encode(frame));
  const app = new Elysia({ precompile: true })
    .get("/v1/agents/:name", ({ params }) => ({ ...agent, name: params.name }))
    .post("/v1/tasks", ({ status }) => status(202, accepted), { body: standardSchema(taskSchema) })
    .get("/events", () => eventStream(encoded, waitMs))
    .get("/quiet", ({ request, server }) => {
      server?.timeout(request, 0);
      return eventStream(null, 0);
    })
    .get("/readyz", () => "ready")
    .listen({ hostname: "127.0.0.1", port: 0, reusePort: false, idleTimeout: 60, development: false });
  return { port: app.server?.port };
});
