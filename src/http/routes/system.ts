import { Elysia } from "elysia";
import { isOperator } from "../../access/operator.ts";
import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import { VIA_HEADER } from "../../base/via.ts";
import { isLoopback } from "../../config/listen.ts";
import type { Gate } from "../../gate/gate.ts";
import type { RequestLimit } from "../../gate/requests.ts";
import { callHeaders, problemResponse } from "../answer/answer.ts";
import { madeOnce, type PublicFiles } from "../answer/public-files.ts";
import { readCredential } from "../caller/credential.ts";
import { docsAssets, docsFile } from "../docs/assets.ts";
import type { Metrics } from "../metrics.ts";

/** The parts of the node that must work for it to take calls. */
export interface Readiness {
  /** Whether the process is about to stop, so that clients should send no new work. */
  isDraining(): boolean;
  /** Names of the failing parts; empty if ready. */
  failing(): Promise<readonly string[]>;
}

export interface SystemRouteParts {
  readonly ids: Ids;
  readonly clock: Clock;
  readonly gate: Pick<Gate, "call">;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly operatorSecret: string;
  /** Sets the gauges just before they are read. */
  measure(): void;
}

/** From other machines, metrics need an admin token of `default`, and reading them is an ordinary call. */
const READ_METRICS = { action: "metrics.read", scope: "admin", counted: true } as const;
/** How long a probe's result is reused. Each probe commits and syncs, and anyone may ask for one. */
const READY_MS = 1_000;

/**
 * Probes, metrics and documentation. They are not calls: they are neither counted nor recorded, except metrics
 * requested from another machine. No probe calls a model.
 */
export function systemRoutes(parts: SystemRouteParts, served: PublicFiles) {
  const { ids, clock, gate, metrics, readiness, operatorSecret, measure } = parts;
  const headers = (type: string) => ({ "gatehouse-request-id": ids("req"), "content-type": type });
  const json = (status: number, body: object) =>
    new Response(JSON.stringify(body), { status, headers: headers("application/json") });

  let known: { readonly at: number; readonly failing: Promise<readonly string[]> } | undefined;
  /** Requests during a probe, or soon after it began, share its result. */
  function ready(): readonly string[] | Promise<readonly string[]> {
    if (readiness.isDraining()) return ["draining"];
    const now = clock.monotonic();
    if (known === undefined || now - known.at >= READY_MS) known = { at: now, failing: readiness.failing() };
    return known.failing;
  }

  const app = new Elysia({ detail: { hide: true } })
    .get("/livez", () => json(200, { status: "ok" }))
    .get("/readyz", async () => {
      const failing = await ready();
      return failing.length === 0
        ? json(200, { status: "ok" })
        : json(503, { status: "unavailable", failing });
    })
    .get("/metrics", async ({ request, server }) => {
      const address = server?.requestIP(request)?.address;
      const requestId = ids("req");
      let ledgerSeq: number | null = null;
      let limit: RequestLimit | null = null;
      if (!isLocal(address, request.headers)) {
        const credential = readCredential(request.headers, operatorSecret);
        const origin = { requestId, channel: "rest", credential, source: address ?? "local" } as const;
        const answer = await gate.call(READ_METRICS, origin, async ({ caller }) => {
          if (!isOperator(caller)) {
            throw new Problem(
              "operator_only",
              "Metrics cover all workspaces, so only the node's operator may read them.",
            );
          }
        });
        ({ ledgerSeq, limit } = answer);
        if (!answer.ok)
          return problemResponse(answer.problem, callHeaders({ ...answer, requestId }), requestId);
      }
      measure();
      return new Response(await metrics.registry.metrics(), {
        headers: {
          ...callHeaders({ requestId, ledgerSeq, limit }),
          "content-type": metrics.registry.contentType,
        },
      });
    });

  for (const asset of docsAssets()) {
    const file = madeOnce(() => docsFile(asset));
    app.get(asset.path, async ({ request, server }) => served.answer({ request, server }, await file()));
  }
  return app;
}

/**
 * Headers by which proxies, CDNs and other Gatehouse instances' connectors mark a request as forwarded. A proxy on
 * this machine makes every client look local. A proxy that adds none of these headers cannot be distinguished from a
 * local client.
 */
const FORWARDING = new Set([
  ...["forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cdn-loop"],
  ...["cf-connecting-ip", "fastly-client-ip", "x-envoy-external-address", VIA_HEADER.toLowerCase()],
]);
const FORWARDING_PREFIX = "x-forwarded-";

/**
 * Whether a request comes from this machine and addresses it by a local name. A web page could use another name that
 * resolves here (DNS rebinding).
 */
function isLocal(address: string | undefined, headers: Headers): boolean {
  for (const name of headers.keys()) {
    if (FORWARDING.has(name) || name.startsWith(FORWARDING_PREFIX)) return false;
  }
  const host = headers.get("host")?.toLowerCase().replace(/:\d+$/, "") ?? "";
  if (host !== "" && !isLoopback(host.replace(/^\[(.*)\]$/, "$1"))) return false;
  return address !== undefined && isLoopback(address.replace(/^::ffff:/, ""));
}
