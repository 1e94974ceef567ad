import { Elysia } from "elysia";
import type { Ids } from "../../base/ids.ts";
import type { Gate } from "../../gate/gate.ts";
import { callHeaders, problemResponse } from "../answer.ts";
import { readCredential } from "../credential.ts";
import { DOCS_HEADERS, docsAssets } from "../docs/assets.ts";
import type { Metrics } from "../metrics.ts";

/** A part of the node that must work for it to take calls. */
export interface Readiness {
  /** Names of the parts that fail; empty when ready. */
  failing(): Promise<readonly string[]>;
}

export interface SystemRouteParts {
  readonly ids: Ids;
  readonly gate: Gate;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly operatorSecret: string;
  /** Sets the gauges just before they are read. */
  measure(): void;
}

/** From elsewhere than this machine metrics are an admin's, and a call like another, though not counted. */
const READ_METRICS = { action: "metrics.read", scope: "admin", counted: false } as const;

/** Probes, metrics and documentation: not calls of a workspace, so neither counted nor recorded. No probe calls a model. */
export function systemRoutes({ ids, gate, metrics, readiness, operatorSecret, measure }: SystemRouteParts) {
  const headers = (type: string) => ({ "gatehouse-request-id": ids("req"), "content-type": type });
  const json = (status: number, body: object) =>
    new Response(JSON.stringify(body), { status, headers: headers("application/json") });

  const app = new Elysia({ detail: { hide: true } })
    .get("/livez", () => json(200, { status: "ok" }))
    .get("/readyz", async () => {
      const failing = await readiness.failing();
      return failing.length === 0
        ? json(200, { status: "ok" })
        : json(503, { status: "unavailable", failing });
    })
    .get("/metrics", async ({ request, server }) => {
      const address = server?.requestIP(request)?.address;
      const requestId = ids("req");
      let ledgerSeq: number | null = null;
      if (!isLocal(address, request.headers)) {
        const credential = readCredential(request.headers, operatorSecret);
        const origin = { requestId, channel: "rest", credential, source: address ?? "local" } as const;
        const answer = await gate.call(READ_METRICS, origin, async () => {});
        ledgerSeq = answer.ledgerSeq;
        if (!answer.ok)
          return problemResponse(answer.problem, callHeaders({ ...answer, requestId }), requestId);
      }
      measure();
      return new Response(await metrics.registry.metrics(), {
        headers: {
          ...callHeaders({ requestId, ledgerSeq, limit: null }),
          "content-type": metrics.registry.contentType,
        },
      });
    });

  for (const { path, type, body } of docsAssets()) {
    app.get(path, () => new Response(body, { headers: { ...DOCS_HEADERS, ...headers(type) } }));
  }
  return app;
}

/** A proxy on the same machine makes every client look local; what it forwarded says otherwise. */
function isLocal(address: string | undefined, headers: Headers): boolean {
  if (headers.has("x-forwarded-for") || headers.has("forwarded") || headers.has("x-real-ip")) return false;
  return address === "::1" || address === "::ffff:127.0.0.1" || address?.startsWith("127.") === true;
}
