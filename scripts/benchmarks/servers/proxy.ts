/**
 * A proxy to the upstream: Elysia and `fetch`, without authentication, limits or prices. With a ledger, it records
 * each answer before it is sent: an entry whose hash covers the one before, in SQLite, durable, with many entries per
 * transaction.
 */
import { Database } from "bun:sqlite";
import { Elysia } from "elysia";
import { answerLines } from "../processes/lines.ts";
import { proxyConfig } from "./config.ts";

/** Records entries of one turn of the event loop in one transaction. */
class ChainedLedger {
  readonly #database: Database;
  #previous = "0".repeat(64);
  #waiting: { readonly entry: object; readonly done: () => void }[] = [];

  constructor(path: string) {
    this.#database = new Database(path);
    this.#database.run("PRAGMA journal_mode = WAL");
    this.#database.run("PRAGMA synchronous = FULL");
    this.#database.run(
      "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, bytes TEXT NOT NULL, hash TEXT NOT NULL)",
    );
  }

  record(entry: object): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ entry, done });
      if (this.#waiting.length === 1) setImmediate(() => this.#commit());
    });
  }

  #commit(): void {
    const batch = this.#waiting;
    this.#waiting = [];
    const insert = this.#database.query("INSERT INTO ledger (bytes, hash) VALUES (?, ?)");
    this.#database.transaction(() => {
      for (const { entry } of batch) {
        const bytes = JSON.stringify({ ...entry, prev: this.#previous });
        this.#previous = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
        insert.run(bytes, this.#previous);
      }
    })();
    for (const { done } of batch) done();
  }
}

await answerLines(async (message) => {
  const { upstream, ledger: path } = proxyConfig.parse(message);
  const ledger = path === undefined ? null : new ChainedLedger(path);
  const url = `http://127.0.0.1:${upstream}/v1/chat/completions`;
  const app = new Elysia({ precompile: true })
    .post(
      "/v1/chat/completions",
      async ({ request }) => {
        const body = await request.arrayBuffer();
        const answer = await fetch(url, {
          method: "POST",
          body,
          headers: { "content-type": "application/json", "accept-encoding": "identity" },
        });
        const type = answer.headers.get("content-type") ?? "application/json";
        if (ledger === null) return new Response(answer.body, { headers: { "content-type": type } });
        const bytes = await answer.arrayBuffer();
        await ledger.record({ at: Date.now(), asked: body.byteLength, answered: bytes.byteLength });
        return new Response(bytes, { headers: { "content-type": type } });
      },
      { parse: "none" },
    )
    .get("/readyz", () => "ready")
    .listen({ hostname: "127.0.0.1", port: 0, reusePort: false, idleTimeout: 60, development: false });
  return { port: app.server?.port };
});
